// Drives a gateway with the published client, unchanged, and prints one JSON line for each step.
//
// Environment: CLIENT (the folder with node_modules), BASE, TOKEN, DIRECTORY.
import { pathToFileURL } from "node:url"
import assert from "node:assert/strict"

const env = process.env
// The export "./v2/client" of the package, from the folder where the test has installed it.
const client = pathToFileURL(`${env.CLIENT}/node_modules/@opencode-ai/sdk/dist/v2/client.js`)
const { createOpencodeClient } = await import(client)

const headers = { authorization: `Bearer ${env.TOKEN}` }
const { v2 } = createOpencodeClient({ baseUrl: env.BASE, directory: env.DIRECTORY, headers })
const location = { directory: env.DIRECTORY }
const text = (words, fields = "") => ({ text: `[[sim: ${fields}]] ${words}` })

const ok = async (call) => {
  const { data, error, response } = await call
  assert.ok(response?.ok, `${response?.status} ${JSON.stringify(error)}`)
  return data
}
const refused = async (call, status, tag) => {
  const { error, response } = await call
  assert.equal(response?.status, status, JSON.stringify(error))
  assert.equal(error._tag, tag)
  return error
}
const create = async () => (await ok(v2.session.create({ location }))).data.id
const prompt = (sessionID, words, fields, more = {}) =>
  ok(v2.session.prompt({ sessionID, prompt: text(words, fields), ...more })).then((it) => it.data)
const wait = (sessionID) => ok(v2.session.wait({ sessionID }))
const until = async (look, what) => {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    const found = await look()
    if (found) return found
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error(`never came: ${what}`)
}
const types = async (sessionID) =>
  (await ok(v2.session.history({ sessionID, limit: 100 }))).data.map((event) => event.type)

// Reads an endless stream until `enough`, and closes it.
const read = async (open, enough, after = async () => {}) => {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), 60_000)
  const seen = []
  try {
    const { stream } = await open({ signal: stop.signal, sseMaxRetryAttempts: 1 })
    for await (const event of stream) {
      seen.push(event)
      if (seen.length === 1) await after()
      if (enough(seen)) return seen
    }
  } finally {
    clearTimeout(timer)
    stop.abort()
  }
  throw new Error(`the stream ended after ${JSON.stringify(seen.map((event) => event.type))}`)
}

const steps = {
  async catalogues() {
    assert.equal((await ok(v2.health.get())).healthy, true)
    assert.equal((await ok(v2.location.get())).directory, env.DIRECTORY)
    const agents = (await ok(v2.agent.list())).data
    assert.ok(agents.some((agent) => agent.id === "build"))
    const models = (await ok(v2.model.list())).data
    assert.ok(models.every((model) => model.limit.context > 0 && model.request.headers))
    const [provider] = (await ok(v2.provider.list())).data
    assert.equal((await ok(v2.provider.get({ providerID: provider.id }))).data.id, provider.id)
    await refused(v2.provider.get({ providerID: "nobody" }), 404, "ProviderNotFoundError")
    assert.ok((await ok(v2.skill.list())).data.every((skill) => skill.content))
    assert.deepEqual(
      (await ok(v2.command.list())).data.map((command) => command.name),
      ["review"],
    )
    assert.equal((await ok(v2.reference.list())).data[0].source.type, "local")
  },

  async files() {
    const listed = await ok(v2.fs.list({ path: "src" }))
    assert.deepEqual(listed.data, [{ path: "src/hello.txt", type: "file" }])
    assert.equal(listed.location.directory, env.DIRECTORY)
    assert.equal((await ok(v2.fs.find({ query: "hello" }))).data[0].path, "src/hello.txt")
    const url = "/api/fs/read/src/hello.txt"
    assert.equal(await ok(v2.fs.read({}, { url })), "hello\n")
    await refused(v2.fs.list({ path: "../.." }), 400, "InvalidRequestError")
    await refused(v2.fs.read({}, { url: "/api/fs/read/none" }), 404, "FileNotFoundError")
  },

  async create_and_list() {
    const id = `ses_${crypto.randomUUID().replaceAll("-", "")}`
    const created = (await ok(v2.session.create({ id, location, agent: "build" }))).data
    const again = (await ok(v2.session.create({ id, location }))).data
    assert.deepEqual([created.id, again.id, again.agent], [id, id, "build"])
    const page = await ok(v2.session.list({ limit: 1 }))
    assert.equal(page.data[0].id, id)
    const next = await ok(v2.session.list({ limit: 1, cursor: page.cursor.next }))
    assert.notEqual(next.data[0]?.id, id)
    assert.equal((await ok(v2.session.get({ sessionID: id }))).data.location.directory, env.DIRECTORY)
    await refused(v2.session.get({ sessionID: "ses_nobody" }), 404, "SessionNotFoundError")
    await refused(v2.session.list({ cursor: "nonsense" }), 400, "InvalidCursorError")
    assert.equal(typeof (await ok(v2.session.active())).data, "object")
  },

  async prompt_retry_and_conflict() {
    const sessionID = await create()
    const id = `msg_${crypto.randomUUID().replaceAll("-", "")}`
    const first = await prompt(sessionID, "say it", "answer=done", { id })
    assert.deepEqual([first.id, first.delivery], [id, "steer"])
    const retry = await prompt(sessionID, "say it", "answer=done", { id })
    assert.equal(retry.admittedSeq, first.admittedSeq)
    const other = { sessionID, id, prompt: { text: "something else" } }
    assert.equal((await refused(v2.session.prompt(other), 409, "ConflictError")).resource, id)
    await wait(sessionID)
    assert.equal((await types(sessionID)).filter((type) => type.endsWith(".prompted")).length, 1)
  },

  async events() {
    const sessionID = await create()
    await prompt(sessionID, "go", "answer=done")
    const isOver = (seen) => seen.at(-1).type === "session.next.step.ended"
    const all = await read((options) => v2.session.events({ sessionID }, options), isOver)
    const seqs = all.map((event) => event.durable.seq)
    assert.deepEqual(seqs, [...seqs].sort((a, b) => a - b))
    const after = String(seqs.at(-3))
    const rest = await read((options) => v2.session.events({ sessionID, after }, options), isOver)
    assert.deepEqual(rest, all.slice(-2))
    const page = await ok(v2.session.history({ sessionID, after, limit: 1 }))
    assert.deepEqual([page.data[0], page.hasMore], [rest[0], true])
  },

  async live_stream_with_deltas() {
    const sessionID = await create()
    const own = (seen) => seen.filter((event) => event.data?.sessionID === sessionID)
    const seen = await read(
      (options) => v2.event.subscribe(options),
      (all) => own(all).at(-1)?.type === "session.next.step.ended",
      () => prompt(sessionID, "go", 'chunks=5 delay_ms=20 answer="one two three four five"'),
    )
    assert.deepEqual([seen[0].type, seen[0].data], ["server.connected", {}])
    const deltas = own(seen).filter((event) => event.type === "session.next.text.delta")
    assert.ok(deltas.length > 1 && deltas.every((event) => event.durable === undefined))
    const ended = own(seen).find((event) => event.type === "session.next.text.ended")
    assert.equal(deltas.map((event) => event.data.delta).join(""), ended.data.text)
  },

  async messages() {
    const sessionID = await create()
    const { id } = await prompt(sessionID, "go", "answer=done")
    await wait(sessionID)
    const { data, cursor } = await ok(v2.session.messages({ sessionID, order: "asc", limit: 1 }))
    assert.deepEqual([data[0].id, data[0].type], [id, "user"])
    const next = await ok(v2.session.messages({ sessionID, cursor: cursor.next }))
    assert.deepEqual([next.data[0].type, next.data[0].finish], ["assistant", "stop"])
    assert.equal((await ok(v2.session.message({ sessionID, messageID: id }))).data.id, id)
    const context = (await ok(v2.session.context({ sessionID }))).data
    assert.ok(context.some((message) => message.id === id))
    const missing = { sessionID, messageID: "msg_none" }
    await refused(v2.session.message(missing), 404, "MessageNotFoundError")
    await refused(v2.session.messages({ sessionID, cursor: "x", order: "asc" }), 400, "InvalidCursorError")
  },

  async switch_agent_and_model() {
    const sessionID = await create()
    await ok(v2.session.switchAgent({ sessionID, agent: "plan" }))
    const [model] = (await ok(v2.model.list())).data
    await ok(v2.session.switchModel({ sessionID, model: { id: model.id, providerID: model.providerID } }))
    const session = (await ok(v2.session.get({ sessionID }))).data
    assert.deepEqual([session.agent, session.model.id], ["plan", model.id])
  },

  async interrupt() {
    const sessionID = await create()
    await prompt(sessionID, "take your time", "chunks=400 delay_ms=50")
    await until(async () => (await types(sessionID)).includes("session.next.text.started"), "a text")
    await ok(v2.session.interrupt({ sessionID }))
    await wait(sessionID)
    assert.ok((await types(sessionID)).includes("session.next.step.failed"))
    await ok(v2.session.interrupt({ sessionID }))
    await refused(v2.session.interrupt({ sessionID: "ses_nobody" }), 404, "SessionNotFoundError")
  },

  async steer_and_queue() {
    const sessionID = await create()
    const { id } = await prompt(sessionID, "first", "chunks=20 delay_ms=50 answer=one")
    await until(async () => (await types(sessionID)).includes("session.next.text.started"), "a text")
    const queued = await prompt(sessionID, "second", "answer=two", { delivery: "queue" })
    const steered = await prompt(sessionID, "third", "answer=three", { delivery: "steer" })
    assert.equal(queued.delivery, "queue")
    const stored = await prompt(sessionID, "later", "answer=four", { resume: false })
    await wait(sessionID)
    const { data } = await ok(v2.session.history({ sessionID, limit: 100 }))
    const prompted = data.filter((event) => event.type === "session.next.prompted")
    const order = prompted.map((event) => event.data.messageID)
    assert.deepEqual(order.filter((it) => it !== stored.id), [id, steered.id, queued.id])
    assert.deepEqual(prompted[0].data.delivery, "steer")
  },

  async permissions() {
    const probe = (key) => `tool=probe_once args='{"key": "${key}", "delay_ms": 0}' ; answer=done`
    const ask = async (sessionID, key) => {
      await prompt(sessionID, "go", probe(key))
      const list = async () => (await ok(v2.session.permission.list({ sessionID }))).data[0]
      return until(list, "a permission")
    }
    const sessionID = await create()
    const once = await ask(sessionID, "once")
    assert.deepEqual([once.action, once.sessionID], ["probe_once", sessionID])
    const isListed = async () =>
      (await ok(v2.permission.request.list())).data.some((it) => it.id === once.id)
    await until(isListed, "the permission in the list of all")
    const one = { sessionID, requestID: once.id }
    assert.equal((await ok(v2.session.permission.get(one))).data.id, once.id)
    await ok(v2.session.permission.reply({ ...one, reply: "once" }))
    await wait(sessionID)
    await refused(v2.session.permission.get(one), 404, "PermissionNotFoundError")

    const rejected = await ask(sessionID, "reject")
    await ok(v2.session.permission.reply({ sessionID, requestID: rejected.id, reply: "reject" }))
    await wait(sessionID)

    const always = await ask(sessionID, "always")
    await ok(v2.session.permission.reply({ sessionID, requestID: always.id, reply: "always" }))
    await wait(sessionID)
    const { project } = await ok(v2.location.get())
    const saved = (await ok(v2.permission.saved.list({ projectID: project.id }))).data
    assert.equal(saved[0].action, "probe_once")
    const judged = await ok(
      v2.session.permission.create({ sessionID, action: "probe_once", resources: ["*"] }),
    )
    assert.equal(judged.data.effect, "allow")
    await ok(v2.permission.saved.remove({ id: saved[0].id }))
    assert.deepEqual((await ok(v2.permission.saved.list({ projectID: project.id }))).data, [])
  },

  async questions() {
    const question = { questions: [{ question: "Which colour?", header: "Colour" }] }
    const sessionID = await create()
    const ask = async () => {
      await prompt(sessionID, "go", `tool=question args='${JSON.stringify(question)}' ; answer=thanks`)
      const list = async () => (await ok(v2.session.question.list({ sessionID }))).data[0]
      return until(list, "a question")
    }
    const asked = await ask()
    const isListed = async () =>
      (await ok(v2.question.request.list())).data.some((it) => it.id === asked.id)
    await until(isListed, "the question in the list of all")
    await ok(
      v2.session.question.reply({
        sessionID,
        requestID: asked.id,
        questionV2Reply: { answers: [["red"]] },
      }),
    )
    await wait(sessionID)
    const again = await ask()
    await ok(v2.session.question.reject({ sessionID, requestID: again.id }))
    await wait(sessionID)
    // The same answer may come twice; an unknown question is not found.
    await ok(v2.session.question.reject({ sessionID, requestID: again.id }))
    const unknown = { sessionID, requestID: "que_none" }
    await refused(v2.session.question.reject(unknown), 404, "QuestionNotFoundError")
  },

  async revert() {
    const sessionID = await create()
    const first = await prompt(sessionID, "first", "answer=one")
    await wait(sessionID)
    const second = await prompt(sessionID, "second", "answer=two")
    await wait(sessionID)
    const stage = { sessionID, messageID: second.id }
    assert.equal((await ok(v2.session.revert.stage(stage))).data.messageID, second.id)
    await ok(v2.session.revert.clear({ sessionID }))
    await ok(v2.session.revert.stage(stage))
    await ok(v2.session.revert.commit({ sessionID }))
    const seen = (await types(sessionID)).filter((type) => type.includes(".revert."))
    const acts = ["staged", "cleared", "staged", "committed"]
    assert.deepEqual(seen, acts.map((act) => `session.next.revert.${act}`))
    assert.equal((await ok(v2.session.message({ sessionID, messageID: first.id }))).data.id, first.id)
    const unknown = { sessionID, messageID: "msg_none" }
    await refused(v2.session.revert.stage(unknown), 404, "MessageNotFoundError")
  },

  async compact() {
    const sessionID = await create()
    await prompt(sessionID, "go", "answer=done")
    await wait(sessionID)
    await ok(v2.session.compact({ sessionID }))
    await wait(sessionID)
    const has = (name) => async () => (await types(sessionID)).some((type) => type.includes(name))
    await until(has("compaction"), "a compaction")
  },
}

for (const [name, run] of Object.entries(steps)) {
  try {
    await run()
    console.log(JSON.stringify({ name, ok: true }))
  } catch (error) {
    console.log(JSON.stringify({ name, ok: false, error: String(error?.stack ?? error) }))
  }
}
process.exit(0)

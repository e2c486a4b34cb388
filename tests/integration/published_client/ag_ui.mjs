// The published client of AG-UI drives a thread: text, a tool with an approval, a refusal. It prints what it kept.
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const [packages, url, token, shell] = process.argv.slice(2)
const found = createRequire(`${packages}/package.json`).resolve("@ag-ui/client")
const { HttpAgent } = await import(pathToFileURL(found).href)

const agent = new HttpAgent({
  url: `${url}/ag-ui`,
  threadId: "npm-thread",
  headers: { authorization: `Bearer ${token}` },
})
const seen = []
const subscriber = { onEvent: ({ event }) => void seen.push(event.type) }
const ask = (id, content) => {
  agent.addMessage({ id, role: "user", content })
  return agent.runAgent({ runId: `run-${id}` }, subscriber)
}

await ask("1", '[[sim: answer="hello from npm" chunks=3 delay_ms=60]] hi')
const afterText = structuredClone(agent.messages)

let interrupts = []
await agent.runAgent.call(
  (agent.addMessage({ id: "2", role: "user", content: shell }), agent),
  { runId: "run-2" },
  {
    onEvent: ({ event }) => {
      seen.push(event.type)
      if (event.type === "RUN_FINISHED") interrupts = event.outcome?.interrupts ?? []
    },
  },
)
const resume = interrupts.map((one) => ({
  interruptId: one.id,
  status: "resolved",
  payload: { reply: "once" },
}))
await agent.runAgent({ runId: "run-3", resume }, subscriber)

let refused = null
const stranger = new HttpAgent({ url: `${url}/ag-ui`, threadId: "ses_unknown", headers: agent.headers })
stranger.addMessage({ id: "9", role: "user", content: "hi" })
try {
  await stranger.runAgent({ runId: "run-9" })
} catch (error) {
  refused = String(error.message ?? error)
}

console.log(JSON.stringify({ seen, afterText, messages: agent.messages, state: agent.state, interrupts, refused }))

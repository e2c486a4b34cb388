// Which rows the list of sessions has: what matters now on top, the rest by project or by time. Pure.

const URGENT = { waiting: 0, running: 1, queued: 2, retrying: 3 };

/** What waits for a person comes first, what waits for a tool after what runs. */
export function urgency({ state, code }) {
  return code === "tool" ? 1.5 : URGENT[state];
}

/** Whether a session is shown under a filter. */
export function fits(session, { state, project, text }) {
  if (project && session.projectID !== project) return false;
  if (state && groupOf(session.status) !== state) return false;
  if (!text) return true;
  const hay = `${session.title} ${session.location.directory} ${session.agent ?? ""} ${session.model?.id ?? ""} ${session.id}`.toLowerCase();
  return text.toLowerCase().split(/\s+/).every((word) => hay.includes(word));
}

/** The states that people filter by. */
export function groupOf(status) {
  if (status.state === "waiting") return status.code === "tool" ? "running" : "waiting";
  if (status.state === "queued") return "running";
  if (status.state === "broken" || status.state === "over-budget") return "failed";
  if (status.state === "interrupted" || status.state === "resting") return "idle";
  if (status.state === "retrying") return "running";
  return status.state;
}

/** The rows: `{key, head}` for a group and `{key, session}` for a session. */
export function sessionRows(sessions, filter, grouped) {
  const shown = sessions.filter((session) => fits(session, filter));
  const active = shown.filter((session) => session.status.state in URGENT);
  const rest = shown.filter((session) => !(session.status.state in URGENT));
  active.sort((a, b) => urgency(a.status) - urgency(b.status) || b.time.created - a.time.created || order(a, b));
  rest.sort((a, b) => b.time.updated - a.time.updated || order(a, b));
  const rows = [];
  if (active.length) rows.push({ key: "head active", head: "Active", count: active.length }, ...active.map(row));
  if (!grouped) {
    if (rest.length) rows.push({ key: "head rest", head: active.length ? "Earlier" : "Sessions", count: rest.length }, ...rest.map(row));
    return rows;
  }
  const groups = new Map();
  for (const session of rest) {
    const { directory } = session.location;
    if (!groups.has(directory)) groups.set(directory, []);
    groups.get(directory).push(session);
  }
  for (const [directory, members] of groups) rows.push({ key: `head ${directory}`, head: directory, count: members.length }, ...members.map(row));
  return rows;
}

function order(a, b) {
  return a.id < b.id ? -1 : 1;
}

function row(session) {
  return { key: session.id, session };
}

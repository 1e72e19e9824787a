// Requests to the server, always with the key, which only this page can read.

const STORED = "agent-memory-key";
const WAIT_MILLISECONDS = 60_000;

export class Failure extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function send(path, options) {
  let answer;
  try {
    answer = await fetch(path, { ...options, signal: AbortSignal.timeout(WAIT_MILLISECONDS) });
  } catch (error) {
    const message = error.name === "TimeoutError"
      ? "There was no answer within a minute."
      : "The server does not answer. Is `agent-memory ui` still running?";
    throw new Failure(0, "NO_ANSWER", message);
  }
  const { data, error } = await answer.json();
  if (error) throw new Failure(answer.status, error.code, error.message);
  return data;
}

const AGENT = "agent-memory-agent";
const early = new Map();

/** The key, and the agent if it is not the page's own. */
const headers = (agentId = chosenAgent()) => ({
  "X-Agent-Memory-Key": localStorage.getItem(STORED) ?? "",
  ...(agentId && { "X-Agent-Memory-Agent": agentId }),
});

/** Let this tab show another agent; `null` is the page's own. */
export function chooseAgent(agentId) {
  early.clear(); // requests for the other agent
  if (agentId === null) sessionStorage.removeItem(AGENT);
  else sessionStorage.setItem(AGENT, agentId);
}

export const chosenAgent = () => sessionStorage.getItem(AGENT);

/** Exchange the token of the address, if there is one, for a cookie and the key. */
export async function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", "/#/memories");
  chooseAgent(null);
  const { key } = await post("session", { token });
  localStorage.setItem(STORED, key);
}

function pathOf(name, fields) {
  const known = Object.entries(fields).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return `/api/${name}?${new URLSearchParams(known)}`;
}

export function get(name, fields = {}) {
  const path = pathOf(name, fields);
  const answer = early.get(path) ?? send(path, { headers: headers() });
  early.delete(path);
  return answer;
}

/** Send the first view's requests early, so that they need not wait their turn. */
export function getEarly(name, fields) {
  const answer = get(name, fields);
  answer.catch(() => {}); // the view that asks reports it
  early.set(pathOf(name, fields), answer);
}

/** Request a change, for the agent that this tab shows unless another is named. */
export function post(name, body, agentId = chosenAgent()) {
  return send(`/api/${name}`, {
    method: "POST",
    headers: { ...headers(agentId), "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

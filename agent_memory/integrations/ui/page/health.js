// Whether the file or the database is sound, what waits in it, a file's backups, and the agents beside it.

import { act, inTurn, notify } from "./actions.js";
import { chooseAgent, get, post } from "./api.js";
import { about, button, count, el, empty, facts, number, time } from "./dom.js";

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;

export async function health({ overview, refresh }) {
  const { info, backups } = await get("health");
  const outcome = el("div", { role: "status" });
  const look = (name) => async () => {
    outcome.replaceChildren("Checking all of it…");
    try {
      outcome.replaceChildren(...verdict(await post(name, {}), look("repair")));
    } catch (error) {
      outcome.replaceChildren(error.message);
    }
  };
  return [
    [info.warning, info.suggestion].filter(Boolean).map((note) => el("p", { class: "warning" }, note)),
    facts([
      [info.server ? "Database" : "File", el("code", {}, info.path)],
      ["Size", `${info.stats.storage_size_mb.toFixed(2)} MB`],
      ["Memories", `${number(info.memory_count)}, and ${number(info.archived_count)} archived`],
      ["Search", info.storage_backend === "vector" ? `by words and meaning (${info.vector_model})` : "by words"],
      ["Waiting to be embedded", number(info.pending_embeddings)],
      ["Searches", `${number(info.stats.total_queries)}, ${info.stats.avg_query_latency_ms.toFixed(1)} ms each`],
      ["Schema", `${info.schema_version}, ${info.server ? `PostgreSQL ${info.server_version}` : `SQLite ${info.sqlite_version}`}`],
      info.server && ["Connections", `${info.server.connections} of ${info.server.pool_size}, ${info.server.waiting} waiting`],
    ].filter(Boolean)),
    overview.read_only ? null : el("div", { class: "buttons" }, button("Check for damage", look("check"))),
    outcome,
    el("h2", {}, "Backups"),
    info.server
      ? empty("A database is backed up with its own tools.", "Or export the memories: `agent-memory export`.")
      : list(backups, { overview, refresh }),
  ];
}

function list(backups, { overview, refresh }) {
  return [
    overview.read_only ? null : button("Back up now", () => act("Backed up.", () => post("backup", {}), refresh)),
    backups.length
      ? el("ul", { class: "rows" }, backups.map((backup) => el("li", {},
        el("code", {}, backup.path),
        about(time(backup.made_at, { withTime: true }), megabytes(backup.size_bytes), backup.memory_count === null ? null : count(backup.memory_count, "memory", "memories"), backup.reason ? `before ${backup.reason}` : "by hand", backup.problem))))
      : empty("There are no backups yet.", "The library makes one before anything destructive; make one by hand whenever you like."),
  ];
}

function verdict({ ok, problems, notes }, repair) {
  return [
    el("p", { class: ok ? "verdict" : "verdict bad" }, ok ? "No damage was found." : `${count(problems.length, "problem")} found.`),
    el("ul", {}, problems.map((problem) => el("li", {}, `${problem.kind}: ${problem.detail}${problem.repaired ? " (repaired)" : ""}`))),
    ...notes.map((note) => el("p", { class: "hint" }, note)),
    ...(ok ? [] : [button("Repair without losing anything", repair)]),
  ];
}

export async function agents({ overview }) {
  const { agents: all } = await get("agents");
  if (!all.length) return empty("This is a single file.", "Agents beside each other in one folder are listed here.");
  const choose = (agent) => () => inTurn(async () => {
    try {
      // An older file is upgraded first, which merely viewing it must not do.
      if (agent.is_writable && !overview.is_locked) await post("open", {}, agent.agent_id);
    } catch (error) {
      notify(error.message, { isError: true });
      return;
    }
    chooseAgent(agent.agent_id);
    location.hash = "#/memories";
    location.reload();
    await new Promise(() => {}); // queued actions were meant for the previous agent
  });
  return el("ul", { class: "rows" }, all.map((agent) => {
    const isShown = agent.agent_id === overview.agent_id;
    return el("li", { "aria-current": isShown ? "true" : null },
      el("strong", { dir: "auto" }, agent.agent_id), isShown ? " (shown here)" : null,
      about(
        agent.is_writable && !overview.is_locked ? null : el("span", { class: "badge" }, "read-only"),
        agent.memory_count === null ? null : count(agent.memory_count, "memory", "memories"), `${agent.storage_size_mb.toFixed(2)} MB`, agent.last_accessed && el("span", {}, "used ", time(agent.last_accessed)), agent.problem,
        isShown || agent.memory_count === null ? null : button("Show", choose(agent), { "aria-label": `Show ${agent.agent_id}` })));
  }));
}

import { spawn } from "node:child_process";
import { appendFileSync, closeSync, readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

/**
 * An agent that speaks the Agent Client Protocol and does what a file tells it, whatever it is asked: a program by itself,
 * `node scripted-agent.test-kit.ts SCRIPT RECORD`. What it is sent and sees goes into the record, a JSON value a line.
 */

export type AgentCall = { name: string; arguments?: Record<string, unknown> };
export type AgentStep =
  | { say: string }
  | { think: string }
  /** At the same moment. */
  | { calls: AgentCall[] }
  | { permission: { title: string; kind?: string } }
  /** Of the client: files, a terminal. */
  | { request: { method: string; params: Record<string, unknown> } }
  /** Records its folder and environment. */
  | { look: true }
  /** Sleepers that end by themselves after two minutes: `setsid` leaves the process group. */
  | { sleepers: ("child" | "setsid")[] }
  | { raw: string; times?: number }
  | { error: string }
  | { exit: number }
  /** Its output ends, and it goes on. */
  | { mute: true }
  | { hang: true };

export type AgentScript = {
  steps: AgentStep[];
  stopReason?: string;
  /** The method that it never answers. */
  silentAt?: string;
  http?: boolean;
  models?: string[];
};

type Json = Record<string, unknown>;
type Tools = { url: string; headers: { name: string; value: string }[] };
const SESSION = "scripted-session";
const TITLE = "Give this conversation a title";

function main(script: AgentScript, note: (what: Json) => void): void {
  const waiting = new Map<number, (answer: Json) => void>();
  let [lastId, tools, session] = [0, undefined as Tools | undefined, {} as Json];
  const send = (message: Json) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const update = (sessionUpdate: string, text: string) =>
    send({
      method: "session/update",
      params: { sessionId: SESSION, update: { sessionUpdate, content: { type: "text", text } } },
    });
  const ask = (method: string, params: Json): Promise<Json> => {
    const id = ++lastId;
    send({ id, method, params: { sessionId: SESSION, ...params } });
    return new Promise((resolve) => waiting.set(id, resolve));
  };

  async function step(one: AgentStep): Promise<void> {
    if ("say" in one) update("agent_message_chunk", one.say);
    if ("think" in one) update("agent_thought_chunk", one.think);
    if ("calls" in one) await Promise.all(one.calls.map((call) => callTool(call)));
    if ("permission" in one) {
      const options = ["allow_always", "allow_once", "reject_once"].map((kind) => ({
        optionId: kind,
        name: kind,
        kind,
      }));
      const toolCall = { toolCallId: "t", ...one.permission };
      note({ permission: (await ask("session/request_permission", { toolCall, options }))["result"] });
    }
    if ("request" in one) note({ refused: (await ask(one.request.method, one.request.params))["error"] });
    if ("look" in one) note({ cwd: process.cwd(), env: process.env, files: readdirSync(".", { recursive: true }) });
    if ("sleepers" in one) {
      const pids = one.sleepers.map((how) => {
        const child = spawn("sleep", ["120"], { stdio: "ignore", detached: how === "setsid" });
        child.unref();
        return child.pid;
      });
      note({ pids: [process.pid, ...pids] });
    }
    if ("raw" in one) for (let i = 0; i < (one.times ?? 1); i++) await written(one.raw);
    if ("error" in one) process.stderr.write(one.error);
    if ("exit" in one) process.exit(one.exit);
    if ("mute" in one) closeSync(1);
    if ("hang" in one) await new Promise(() => setInterval(() => {}, 60_000));
  }

  async function callTool({ name, arguments: args = {} }: AgentCall): Promise<void> {
    const headers = Object.fromEntries((tools?.headers ?? []).map((header) => [header.name, header.value]));
    const params = { name, arguments: args };
    const response = await fetch(tools?.url ?? "", {
      method: "POST",
      headers: {
        ...headers,
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    note({ status: response.status, answer: JSON.parse(await response.text()) as unknown });
  }

  async function answer(method: string, params: Json): Promise<Json> {
    if (method === script.silentAt) await new Promise(() => {});
    if (method === "initialize") {
      return { protocolVersion: 1, agentCapabilities: { mcpCapabilities: { http: script.http ?? true } } };
    }
    if (method === "session/new") {
      [tools] = params["mcpServers"] as Tools[];
      session = params;
      const options = script.models?.map((value) => ({ value, name: value }));
      const choice = { id: "m", name: "Model", category: "model", type: "select", currentValue: "x", options };
      return { sessionId: SESSION, ...(options !== undefined && { configOptions: [choice] }) };
    }
    if (method === "session/set_config_option") note({ chosen: params });
    if (method !== "session/prompt") return {};
    const [{ text }] = params["prompt"] as [{ text: string }];
    if (text.includes(TITLE)) update("agent_message_chunk", "A title of the agent");
    else {
      note({ prompt: text });
      note({ session });
      for (const one of script.steps) await step(one);
    }
    const usage = { inputTokens: 30, outputTokens: 5, totalTokens: 35 };
    return { stopReason: script.stopReason ?? "end_turn", usage };
  }

  createInterface({ input: process.stdin })
    .on("line", (line) => {
      const { id, method, params, ...rest } = JSON.parse(line) as Json & { id: number; method?: string; params: Json };
      if (method === undefined) waiting.get(id)?.(rest);
      else void answer(method, params).then((result) => send({ id, result }));
    })
    .on("close", () => process.exit(0));
}

function written(text: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()));
}

const [, program = "", scriptPath, recordPath = ""] = process.argv;
if (import.meta.filename === program && scriptPath !== undefined) {
  main(JSON.parse(readFileSync(scriptPath, "utf8")) as AgentScript, (what) =>
    appendFileSync(recordPath, `${JSON.stringify(what)}\n`),
  );
}

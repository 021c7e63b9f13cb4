import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments } from "../support/arguments.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { bundledAgent } from "../../test/sandboxes/bundled-agent.ts";
import { AgentByHand } from "./agent-by-hand.ts";
import { PromptConnection, type SandboxClient } from "./client.ts";
import { measureImages } from "./images.ts";
import { measureLaunch } from "./launch.ts";
import { withServer } from "./with-server.ts";

/**
 * Questions: what does a prompt take beyond what the agent itself takes, with every event of it durable; how many pieces
 * of text a second reach one who listens, and do all of many who listen get all of them; how long is it from the launch
 * of a workspace with a small repository until its agent has answered; and what do the build of an image and starts from
 * it take?
 *
 *     node bench/sandbox/agents.ts [--prompts 1000] [--deltas 100000] [--listeners 200] [--rounds 5]   (as root, on Linux)
 *
 * The agent is the scripted one of the tests, by the real protocol. The peer of a prompt is the same agent, spoken to
 * over its pipes, in turn with the engine: by the leanest HTTP client there is, and by a library that people use.
 */
const OPTIONS = {
  prompts: { type: "string", default: "1000" },
  deltas: { type: "string", default: "100000" },
  listeners: { type: "string", default: "200" },
  rounds: { type: "string", default: "5" },
} as const;

/** Where sandboxes of the `host` image find Node. */
export const NODE = "/usr/bin/node";
const AGENT = "/home/agent/agent.mjs";
/** Of the agent's, in the sandbox of the first measurements. */
const LIMITS = { cpu_cores: 2, memory_mb: 1024 };
/** Prompts that are not counted: the first starts the agent, and the others find what is slow until it is compiled. */
const WARM_UP = 200;
/** Each of many listeners gets fewer: together they get as many. */
const DELTAS_OF_MANY = 1_000;

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  if (process.platform !== "linux" || process.getuid?.() !== 0 || !existsSync(NODE)) {
    console.log(`agents: skipped, they need Linux, root and ${NODE}`);
    return;
  }
  const agent = await bundledAgent();
  const env = { ENGINE_SANDBOX_AGENT_COMMANDS: `claude-code=${NODE} ${AGENT}` };
  await withServer({ warmPool: 0, env }, async ({ url }, client) => {
    const id = await client.create({ resource_limits: LIMITS });
    await client.put(id, AGENT, new Blob([agent]).stream());
    await measurePrompts(client, { url, id, agent, prompts: options.count("prompts") });
    await measureDeltas(client, id, options.count("deltas"));
    await measureListeners(client, id, options.count("listeners"));
    await client.remove(id);
  });
  await measureLaunch({ node: NODE, agent, rounds: options.count("rounds") });
  await measureImages(options.count("rounds"));
}

async function measurePrompts(
  client: SandboxClient,
  { url, id, agent, prompts }: { url: string; id: string; agent: string; prompts: number },
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "engine-bench-agent-"));
  await writeFile(join(folder, "agent.mjs"), agent);
  const byHand = new AgentByHand([NODE, join(folder, "agent.mjs")]);
  const connection = await PromptConnection.open(url);
  try {
    await byHand.begin();
    const session = await client.converse(id);
    const took = { byHand: [] as number[], lean: [] as number[], undici: [] as number[] };
    for (let n = -WARM_UP; n < prompts; n++) {
      const wanted = `answer ${n}`;
      const hand = await timed(wanted, () => byHand.say(`say ${wanted}`));
      const lean = await timed(wanted, () => connection.say(session, `say ${wanted}`));
      const undici = await timed(wanted, () => client.say(session, `say ${wanted}`));
      if (n < 0) continue;
      took.byHand.push(hand);
      took.lean.push(lean);
      took.undici.push(undici);
    }
    console.log(`\n${prompts} prompts with an answer of one piece, in turn`);
    printTable(
      ["", "p50 ms", "p95 ms"],
      [
        row("over its pipes", took.byHand),
        row("engine", took.lean),
        row("on top", on(took.lean, took.byHand)),
        row("engine, by undici", took.undici),
        row("on top", on(took.undici, took.byHand)),
      ],
    );
  } finally {
    byHand.end();
    connection.close();
    await rm(folder, { recursive: true });
  }
}

function row(name: string, ms: readonly number[]): string[] {
  return [name, shown(median(ms)), shown(ms.toSorted((a, b) => a - b)[Math.floor(ms.length * 0.95)] ?? Number.NaN)];
}

function on(all: readonly number[], base: readonly number[]): number[] {
  return all.map((ms, i) => ms - (base[i] ?? Number.NaN));
}

async function timed(wanted: string, say: () => Promise<string>): Promise<number> {
  const beganAt = performance.now();
  const said = await say();
  const ms = performance.now() - beganAt;
  if (said !== wanted) throw new Error(`the agent said ${JSON.stringify(said)} and not ${JSON.stringify(wanted)}`);
  return ms;
}

async function measureDeltas(client: SandboxClient, id: string, deltas: number): Promise<void> {
  const { seconds } = await flood(client, id, { deltas, listeners: 1 });
  console.log(`\n${deltas} pieces of text to one who listens: ${shown(deltas / seconds)}/s`);
}

async function measureListeners(client: SandboxClient, id: string, listeners: number): Promise<void> {
  const { seconds } = await flood(client, id, { deltas: DELTAS_OF_MANY, listeners });
  const all = DELTAS_OF_MANY * listeners;
  console.log(`${DELTAS_OF_MANY} to each of ${listeners}, none lost: ${shown(all / seconds)}/s in all`);
}

/** From the prompt until everybody has the last piece; rejects where one is missing, or not in its order. */
async function flood(
  client: SandboxClient,
  id: string,
  { deltas, listeners }: { deltas: number; listeners: number },
): Promise<{ seconds: number }> {
  const session = await client.converse(id);
  const listening = Array.from({ length: listeners }, () => client.listen(session));
  await Promise.all(listening.map((events) => events.next()));
  const beganAt = performance.now();
  const heard = listening.map(async (events) => {
    let next = 0;
    for await (const { event_type: type, data } of events) {
      if (type !== "text_delta") continue;
      if (data["text"] !== `${next} `) throw new Error(`piece ${next} is ${JSON.stringify(data["text"])}`);
      if (++next === deltas) return performance.now();
    }
    throw new Error(`the stream ended after ${next} pieces`);
  });
  const [endedAt] = await Promise.all([
    Promise.all(heard).then((times) => Math.max(...times)),
    client.say(session, `flood ${deltas}`),
  ]);
  return { seconds: (endedAt - beganAt) / 1_000 };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));

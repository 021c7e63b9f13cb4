import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { quantile } from "../../src/capacity/quantile.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { AgentByHand } from "./agent-by-hand.ts";
import { NODE, startAgentServer } from "./agent-server.ts";
import { PromptConnection } from "./client.ts";
import { requireSandboxes } from "./with-server.ts";

export const benchmark = defineBenchmark({
  name: "sandbox/prompts",
  question:
    "What does a prompt to an agent in a sandbox take beyond what the agent itself takes, with every event of it durable, " +
    "by the leanest HTTP client there is and by a library that people use?",
  notMeasured:
    "A model: the agent is the scripted one of the tests, by the real protocol, and answers in one piece. The peer is the " +
    "same agent, spoken to over its pipes. As root, on Linux.",
  options: z.strictObject({
    prompts: z.coerce.number().int().positive().default(1_000).describe("in one round, one after the other"),
  }),
  measures: {
    p50: { unit: "ms", better: "less", doc: "until the answer is there: median" },
    p95: { unit: "ms", better: "less", doc: "until the answer is there: but for 5 %" },
    added: {
      unit: "ms",
      better: "less",
      doc: "beyond the same prompt over the pipes, one right after the other: median",
    },
    addedP95: { unit: "ms", better: "less", doc: "beyond the same prompt over the pipes: but for 5 %" },
  },
  rounds: 3,
  hasPeers: true,
  open: async ({ prompts }, { folder }) => {
    requireSandboxes("sandbox/prompts", "/usr/bin/node");
    const { server, client, id, agent, stop } = await startAgentServer();
    const ends: (() => unknown)[] = [stop];
    const close = async () => {
      for (const end of ends.toReversed()) await end();
    };
    try {
      await mkdir(folder, { recursive: true });
      const path = join(folder, "agent.mjs");
      await writeFile(path, agent);
      const byHand = new AgentByHand([NODE, path]);
      ends.push(() => byHand.end());
      await byHand.begin();
      const connection = await PromptConnection.open(server.url);
      ends.push(() => connection.close());
      const session = await client.converse(id);
      const pipes: Say = (text) => byHand.say(text);
      const sideOf = (name: string, say: Say): Side => ({
        name,
        round: async () => await besidePipes(prompts, say, pipes),
        processes: () => ({ server: server.pid }),
      });
      const sides: Side[] = [
        sideOf("engine", (text) => connection.say(session, text)),
        sideOf("engine, undici", (text) => client.say(session, text)),
        { name: "pipes", round: async () => waitsOf(await repeated(prompts, (n) => timed(n, pipes))) },
      ];
      return { sides, close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

type Say = (text: string) => Promise<string>;

/** Each prompt right after the same one over the pipes. */
async function besidePipes(prompts: number, say: Say, pipes: Say): Promise<Record<string, number>> {
  const alone: number[] = [];
  const taken = await repeated(prompts, async (n) => {
    alone.push(await timed(n, pipes));
    return await timed(n, say);
  });
  const added = taken.map((ms, i) => ms - (alone[i] ?? Number.NaN)).toSorted();
  return { ...waitsOf(taken), added: quantile(added, 0.5), addedP95: quantile(added, 0.95) };
}

async function repeated(prompts: number, take: (n: number) => Promise<number>): Promise<Float64Array> {
  const taken = new Float64Array(prompts);
  for (let n = 0; n < prompts; n++) taken[n] = await take(n);
  return taken;
}

async function timed(n: number, say: Say): Promise<number> {
  const wanted = `answer ${n}`;
  const startedMs = performance.now();
  const said = await say(`say ${wanted}`);
  const ms = performance.now() - startedMs;
  if (said !== wanted) throw new Error(`the agent said ${JSON.stringify(said)} and not ${JSON.stringify(wanted)}`);
  return ms;
}

function waitsOf(taken: Float64Array): Record<string, number> {
  const sorted = taken.toSorted();
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) };
}

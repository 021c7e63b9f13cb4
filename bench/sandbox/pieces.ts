import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { startAgentServer } from "./agent-server.ts";
import type { SandboxClient } from "./client.ts";
import { requireSandboxes } from "./with-server.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "sandbox/pieces",
  question:
    "How many pieces of an agent's text a second reach one who listens, and how many do many who listen get together, each " +
    "of them all?",
  notMeasured:
    "A model: the agent is the scripted one of the tests, which writes as fast as it can. A piece that is missing, or not " +
    "in its order, fails the run. As root, on Linux.",
  options: z.strictObject({
    pieces: count.default(100_000).describe("to one who listens"),
    listeners: count.default(200).describe("who listen together"),
    piecesEach: count.default(1_000).describe("to each of these"),
  }),
  measures: {
    one: { unit: "pieces/s", better: "more", doc: "to one who listens" },
    many: { unit: "pieces/s", better: "more", doc: "to many who listen, together" },
  },
  rounds: 3,
  open: async ({ pieces, listeners, piecesEach }) => {
    requireSandboxes("sandbox/pieces", "/usr/bin/node");
    const { server, client, id, stop } = await startAgentServer();
    const round = async () => ({
      one: pieces / (await floodSeconds(client, id, { pieces, listeners: 1 })),
      many: (piecesEach * listeners) / (await floodSeconds(client, id, { pieces: piecesEach, listeners })),
    });
    return { sides: [{ name: "engine", round, processes: () => ({ server: server.pid }) }], close: stop };
  },
});

type Flood = { pieces: number; listeners: number };

/** From the prompt until everybody has the last piece. */
async function floodSeconds(client: SandboxClient, id: string, { pieces, listeners }: Flood): Promise<number> {
  const session = await client.converse(id);
  const listening = Array.from({ length: listeners }, () => client.listen(session));
  await Promise.all(listening.map((events) => events.next()));
  const startedMs = performance.now();
  const heard = listening.map(async (events) => {
    let next = 0;
    for await (const { event_type: type, data } of events) {
      if (type !== "text_delta") continue;
      if (data["text"] !== `${next} `) throw new Error(`piece ${next} is ${JSON.stringify(data["text"])}`);
      if (++next === pieces) return performance.now();
    }
    throw new Error(`the stream ended after ${next} pieces`);
  });
  const [endedMs] = await Promise.all([
    Promise.all(heard).then((times) => Math.max(...times)),
    client.say(session, `flood ${pieces}`),
  ]);
  return (endedMs - startedMs) / 1_000;
}

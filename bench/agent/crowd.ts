import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { askEngine, EXPECTED, startAsked } from "./asked.ts";

export const benchmark = defineBenchmark({
  name: "agent/crowd",
  question: "How long do many take who ask the agent at once, and does every one of them get all events?",
  notMeasured: "A model's time: it is scripted, without delay, in the measuring process.",
  options: z.strictObject({
    clients: z.coerce.number().int().positive().default(100).describe("who ask at once"),
  }),
  measures: { whole: { unit: "ms", better: "less", doc: "until the last one has the last event" } },
  rounds: 5,
  startsServer: true,
  open: async ({ clients }, { entry }) => {
    const { server, close } = await startAsked(entry);
    const round = async () => {
      const startedMs = performance.now();
      const asked = await Promise.all(Array.from({ length: clients }, () => askEngine(server)));
      const whole = performance.now() - startedMs;
      const wrong = asked.filter(({ answer, rows }) => answer !== EXPECTED.answer || rows !== EXPECTED.rows);
      if (wrong.length > 0)
        throw new Error(`${wrong.length} of ${clients} had another answer: ${JSON.stringify(wrong[0])}`);
      return { whole };
    };
    return { sides: [{ name: "agent", round, processes: () => ({ server: server.pid }) }], close };
  },
});

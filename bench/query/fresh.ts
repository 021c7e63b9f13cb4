import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { passData, PASS_MEASURES, PASS_OPTIONS } from "./pass.ts";
import { FRESH_ROWS, seedHomeIn } from "./seed.ts";
import { engineSide } from "./side.ts";
import { firstTouchSides, warmSides } from "./sides.ts";
import { CUT_BYTES } from "./suite.ts";

export const benchmark = defineBenchmark({
  name: "query/fresh",
  question: "What does a query cost while all rows are fresh, in small tlm extents, against all of them in Parquet?",
  notMeasured: "Ingest and compaction beside it (query/half-fresh), and many queries at a time.",
  options: z.strictObject({
    ...PASS_OPTIONS,
    extentRows: z.coerce.number().int().positive().default(FRESH_ROWS).describe("of one fresh extent"),
    state: z
      .enum(["warm", "first"])
      .default("warm")
      .describe("first: the first query of a new process without local caches, files being in the page cache"),
  }),
  measures: PASS_MEASURES,
  rounds: 5,
  open: async (options, context) => {
    const { folder, data, queries } = await passData(options, context.folder);
    const fresh = await seedHomeIn(folder, data, { format: "tlm", cut: { rows: options.extentRows } });
    const parquet = await seedHomeIn(folder, data, { format: "parquet", cut: { sizeBytes: CUT_BYTES } });
    const sides = [engineSide("fresh", fresh), engineSide("Parquet", parquet)];
    if (options.state === "warm") return await warmSides(sides, queries, options);
    return firstTouchSides(sides, queries, {
      each: options.each,
      beforeStart: async () => {
        for (const home of [fresh, parquet]) await home.forgetCaches();
      },
      beforeQuery: () => {},
    });
  },
});

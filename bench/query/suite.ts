import { availableParallelism } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { installPeers } from "../peers/install.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import type { Cut } from "../support/load-plan.ts";
import { MIB } from "../support/report.ts";
import { passData, PASS_MEASURES, PASS_OPTIONS } from "./pass.ts";
import { seedHomeIn } from "./seed.ts";
import { engineSide, librarySide, type LibraryName } from "./side.ts";
import { dropPageCache, firstTouchSides, warmSides } from "./sides.ts";

/** What a large body is cut into at ingest. */
export const CUT_BYTES = 16 * MIB;

export const benchmark = defineBenchmark({
  name: "query/suite",
  question:
    "How long does a query take over HTTP, against DuckDB in process over the very same Parquet extents, DuckDB over its " +
    "own table, and ClickHouse (chDB) over a MergeTree table?",
  notMeasured:
    "Many at a time. The engine's time is from the request to the last byte of NDJSON; DuckDB's ends with its last chunk, " +
    "of which no text is made; chDB's includes its NDJSON.",
  options: z.strictObject({
    ...PASS_OPTIONS,
    extentRows: z.coerce
      .number()
      .int()
      .positive()
      .optional()
      .describe("of one extent; without it they are what bodies of 16 MiB become"),
    state: z
      .enum(["warm", "cold"])
      .default("warm")
      .describe("cold: a new process for each query, the page cache dropped, local caches removed; as root"),
    chdb: z.stringbool().default(true).describe("false leaves it out; it is a package of 550 MB"),
  }),
  measures: PASS_MEASURES,
  rounds: 5,
  hasPeers: true,
  open: async (options, context) => {
    const { extentRows, state, chdb } = options;
    const { folder, data, queries } = await passData(options, context.folder);
    const cut: Cut = extentRows === undefined ? { sizeBytes: CUT_BYTES } : { rows: extentRows };
    const home = await seedHomeIn(folder, data, { format: "parquet", cut });
    if (chdb) installPeers();
    const names: LibraryName[] = chdb ? ["raw", "table", "chdb"] : ["raw", "table"];
    const place = { folder: join(folder, `peers-${options.rows}`), data, files: home.files };
    const libraries = names.map((name) => librarySide(name, { ...place, threads: availableParallelism() }));
    const sides = [engineSide("engine", home), ...libraries];
    if (state === "warm") return await warmSides(sides, queries, options);
    return firstTouchSides(sides, queries, {
      each: options.each,
      beforeStart: () => home.forgetCaches(),
      beforeQuery: dropPageCache,
    });
  },
});

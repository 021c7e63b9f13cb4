import { systemClock } from "../../../src/core/clock.ts";
import { messageOf } from "../../../src/core/errors.ts";
import { seededRandom } from "../../../src/core/random.ts";
import { Chooser } from "../../../src/format/ndjson/generate-values.test-kit.ts";
import { createQueryHarness, type QueryHarness } from "../../../src/query/query.test-kit.ts";
import { compareRows, parseLines, show, type Exact } from "./compare.test-kit.ts";
import { extentsOf, makeTables, SIDES } from "./dataset.test-kit.ts";
import { createOracle, type Oracle } from "./oracle.test-kit.ts";
import { randomQuery } from "./queries.test-kit.ts";
import { Context, type Select } from "./sources.test-kit.ts";

/**
 * Random queries over the same rows as fresh `tlm` extents, as Parquet and as a mixture of both, held against plain
 * DuckDB. Every query has a random source of its own, so that any one of them can be run again alone.
 */
export type DifferentialOptions = {
  seed: number;
  queries: number;
  /** The number of the first query. */
  first?: number;
  /** Stops after so many queries with a difference. */
  maxDifferences?: number;
  /** Called after every query. */
  onQuery?: (query: { index: number; sql: string; seconds: number }) => void;
};

export type DifferentialReport = {
  queries: number;
  /** Refused by the engine and by plain DuckDB alike: they show nothing, and should be rare. */
  refused: string[];
  /** Answers with rows in them. */
  answered: number;
  differences: string[];
};

type Answer = { rows: Map<string, Exact>[] } | { error: string };

export async function runDifferential(options: DifferentialOptions): Promise<DifferentialReport> {
  const { seed, queries, first = 0, maxDifferences = 5, onQuery } = options;
  const tables = makeTables(seededRandom(seed));
  const newest = Math.max(...tables.map((table) => table.versions.length));
  const harness = createQueryHarness({ pool: { children: SIDES.length } });
  const oracle = await createOracle(tables, newest);
  const report: DifferentialReport = { queries: 0, refused: [], answered: 0, differences: [] };
  try {
    for (const side of SIDES) {
      for (const table of tables) await harness.addTable(side.name, table.name, table.columns, extentsOf(table, side));
    }
    for (let index = first; index < first + queries && report.differences.length < maxDifferences; index++) {
      const startedMs = systemClock.monotonicMs();
      const query = randomQuery(new Context(new Chooser(seededRandom(seedOf(seed, index))), newest));
      await runOne(query, { harness, oracle, report, rerun: `node scripts/query-differential.ts 1 ${seed} ${index}` });
      onQuery?.({ index, sql: query.sql.ours, seconds: (systemClock.monotonicMs() - startedMs) / 1000 });
    }
    return report;
  } finally {
    oracle.close();
    await harness.close();
  }
}

function seedOf(seed: number, index: number): number {
  return (seed ^ Math.imul(index + 1, 0x9e3779b1)) >>> 0;
}

type Run = { harness: QueryHarness; oracle: Oracle; report: DifferentialReport; rerun: string };

async function runOne(query: Select, { harness, oracle, report, rerun }: Run): Promise<void> {
  const [plain, ...sides] = await Promise.all([
    answerOf(oracle.rows(query.sql.plain)),
    ...SIDES.map(({ name }) => answerOf(harness.text(query.sql.ours, { database: name }).then(parseLines))),
  ]);
  report.queries++;
  const differences = sides.flatMap((ours, i) => {
    const what = differenceOf(ours, plain, query.ordered);
    return what === undefined ? [] : [`${SIDES[i]?.name}: ${what}\n  answer: ${shown(ours)}`];
  });
  if (differences.length > 0) {
    const texts = [`query: ${query.sql.ours}`, `plain: ${query.sql.plain}`, `plain answer: ${shown(plain)}`];
    report.differences.push([...differences, ...texts, `again: ${rerun}`].join("\n"));
  } else if ("error" in plain) report.refused.push(`${plain.error}\n  ${query.sql.ours}\n  again: ${rerun}`);
  else if (plain.rows.length > 0) report.answered++;
}

async function answerOf(rows: Promise<Map<string, Exact>[]>): Promise<Answer> {
  try {
    return { rows: await rows };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

function differenceOf(ours: Answer, plain: Answer, ordered: boolean): string | undefined {
  if ("error" in ours || "error" in plain) {
    const failed = ["error" in ours, "error" in plain];
    return failed[0] === failed[1] ? undefined : "only one of the two fails";
  }
  return compareRows(ours.rows, plain.rows, ordered);
}

const SHOWN_CHARS = 500;

function shown(answer: Answer): string {
  const text = "error" in answer ? answer.error : answer.rows.map(show).join("\n    ");
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}

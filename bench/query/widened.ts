import { seededRandom } from "../../src/core/random.ts";
import { readArguments } from "../support/arguments.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { cutBySize } from "../support/bodies.ts";
import { QueryClient } from "./query-client.ts";

/**
 * Question: what do `sum` and `avg` cost over a column that was inferred as `long` and has become `real`, half of whose
 * rows lie in extents of integers, against the same rows in extents that are all `real`?
 *
 *     node bench/query/widened.ts [--rows 4000000] [--rounds 15] [--format tlm]
 *
 * Both tables come about as a user's would: rows of whole numbers and rows of fractions, pushed in one order and in the
 * other.
 */
const OPTIONS = {
  rows: { type: "string", default: "4000000" },
  rounds: { type: "string", default: "15" },
  format: { type: "string", default: "tlm" },
} as const;

const QUERIES: readonly [name: string, aggregate: string][] = [
  ["sum", "sum(latency)"],
  ["avg", "avg(latency)"],
  ["sum where", "sum(latency) FILTER (latency > 500)"],
];
const WARM_UPS = 3;

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const env = { ENGINE_WRITE_FORMAT: options.text("format") ?? "", ENGINE_STAGING_DISABLED: "true" };
  const server = await startBenchServer({ env });
  const client = new QueryClient(server.url);
  try {
    const rows = options.count("rows");
    const [whole, fractions] = halvesOf(rows);
    await push(server.url, "widened", [whole, fractions]);
    await push(server.url, "plain", [fractions, whole]);
    await checkTypes(client);
    console.log(`\n${rows} rows, half of them whole numbers, ${options.text("format")} extents: milliseconds`);
    printTable(["", "half long", "all real", "ratio"], await measure(client, options.count("rounds")));
  } finally {
    client.close();
    await server.stop();
  }
}

/** Values are multiples of a quarter, so that their sum is exact in whatever order it is made. */
function halvesOf(rows: number): [Buffer, Buffer] {
  const random = seededRandom(1);
  const half = (valueOf: () => number) => {
    const lines: Buffer[] = [];
    let part = "";
    for (let i = 0; i < rows / 2; i++) {
      part += `{"at":"2026-01-01T00:00:00Z","latency":${valueOf()}}\n`;
      if (part.length < MIB) continue;
      lines.push(Buffer.from(part));
      part = "";
    }
    return Buffer.concat([...lines, Buffer.from(part)]);
  };
  const below = (limit: number) => Math.floor(random.next() * limit);
  return [half(() => below(1_000)), half(() => below(1_000) + 0.25 + below(3) / 4)];
}

async function push(url: string, table: string, halves: readonly Buffer[]): Promise<void> {
  const headers = { "Content-Type": "application/x-ndjson", "X-Table": table, "X-Engine-Infer-Types": "true" };
  for (const half of halves) {
    for (const body of cutBySize(half, 2 * MIB)) {
      const answer = await fetch(`${url}/v1/ingest`, { method: "POST", headers, body });
      const text = await answer.text();
      if (answer.status !== 200 || text.includes("kept_in_props")) throw new Error(`a push answered ${text}`);
    }
  }
}

async function checkTypes(client: QueryClient): Promise<void> {
  const sql = "SELECT table_name, type FROM system.columns WHERE name = 'latency' ORDER BY table_name";
  const { body } = await client.run(sql, { keep: true });
  const wanted = '{"table_name":"plain","type":"real"}\n{"table_name":"widened","type":"real"}\n';
  if (body !== wanted) throw new Error(`the columns are\n${body}`);
}

async function measure(client: QueryClient, rounds: number): Promise<string[][]> {
  const rows: string[][] = [];
  for (const [name, aggregate] of QUERIES) {
    const sqlOf = (table: string) => `SELECT ${aggregate} AS x, count(latency) AS n FROM ${table}`;
    const answers = [];
    for (const table of ["widened", "plain"]) answers.push((await client.run(sqlOf(table), { keep: true })).body);
    if (answers[0] !== answers[1]) throw new Error(`${name}: ${answers.join(" is not ")}`);
    const pairs: { widened: number; plain: number }[] = [];
    for (let round = -WARM_UPS; round < rounds; round++) {
      const widened = (await client.run(sqlOf("widened"))).ms;
      const plain = (await client.run(sqlOf("plain"))).ms;
      if (round >= 0) pairs.push({ widened, plain });
    }
    const ratio = median(pairs.map(({ widened, plain }) => widened / plain));
    const medians = [median(pairs.map((pair) => pair.widened)), median(pairs.map((pair) => pair.plain))];
    rows.push([name, ...medians.map(shown), `${shown(ratio)}×`]);
  }
  return rows;
}

if (import.meta.main) await main(process.argv.slice(2));

import { seededRandom } from "../../../src/core/random.ts";
import { below, pick } from "../fuzz/mutate.test-kit.ts";
import { Translated, type Outcome } from "../translated.test-kit.ts";
import { COLUMNS, datatable, drawExpression, drawTable } from "./draw.test-kit.ts";
import { drawStage, type Stage } from "./stages.test-kit.ts";
import { shown, Undecided, written, type Row, type Rows, type Type } from "./values.test-kit.ts";

export type Drawn = { query: string; rows: Rows | undefined; isOrdered: boolean };

const TYPES: readonly Type[] = ["bool", "long", "real", "string", "datetime", "timespan", "dynamic"];

/** A query, and its rows as the evaluator has them: none where the reference does not decide. */
export function drawQuery(seed: number, number: number): Drawn {
  const random = seededRandom(seed ^ Math.imul(number + 1, 0x9e3779b1));
  const table = drawTable(COLUMNS, 6, random);
  if (random.next() < 0.5) {
    const value = drawExpression(pick(TYPES, random), COLUMNS, 3, random);
    const query = `${datatable(table)} | project x = ${value.text}`;
    return {
      query,
      isOrdered: false,
      rows: decided(() => ({ columns: { x: value.type }, rows: table.rows.map((row) => ({ x: value.valueIn(row) })) })),
    };
  }
  const stages: Stage[] = [];
  let { columns } = table;
  for (let left = 1 + below(4, random); left > 0; left--) {
    const stage = drawStage(columns, random);
    stages.push(stage);
    ({ columns } = stage);
  }
  const query = [datatable(table), ...stages.map(({ text }) => text)].join("\n| ");
  const rows = decided(() => ({
    columns,
    rows: stages.reduce<readonly Row[]>((own, stage) => stage.rows(own), table.rows),
  }));
  return { query, rows, isOrdered: stages.at(-1)?.isOrdered === true };
}

function decided(rows: () => Rows): Rows | undefined {
  try {
    return rows();
  } catch (error) {
    if (error instanceof Undecided) return undefined;
    throw error;
  }
}

export type Comparison = { compared: number; undecided: number; differences: string[] };

/** Compares so many drawn queries with what the translator and DuckDB make of them. */
export async function compareQueries(seed: number, queries: number, first = 0): Promise<Comparison> {
  const translated = await Translated.open();
  const comparison: Comparison = { compared: 0, undecided: 0, differences: [] };
  for (let number = first; number < first + queries; number++) {
    const { query, rows, isOrdered } = drawQuery(seed, number);
    if (rows === undefined) {
      comparison.undecided++;
      continue;
    }
    comparison.compared++;
    const difference = differenceOf(rows, isOrdered, await translated.run(query));
    if (difference !== undefined) comparison.differences.push(`${number}: ${query}\n  ${difference}`);
  }
  return comparison;
}

function differenceOf(wanted: Rows, isOrdered: boolean, outcome: Outcome): string | undefined {
  if ("refused" in outcome) return `${JSON.stringify(outcome.refused)}; ${outcome.sql ?? ""}`;
  const types = JSON.stringify(wanted.columns);
  if (JSON.stringify(outcome.types) !== types) return `types ${JSON.stringify(outcome.types)} instead of ${types}`;
  const columns = Object.entries(wanted.columns);
  const want = wanted.rows.map((row) => columns.map(([name, type]) => written(type, row[name] ?? null)).join(" | "));
  const have = outcome.rows.map((row) => columns.map(([name, type]) => shown(type, row[name])).join(" | "));
  const [a, b] = isOrdered ? [want, have] : [want.toSorted(), have.toSorted()];
  if (a.join("\n") === b.join("\n")) return undefined;
  return `\n    ${b.join("\n    ")}\n  instead of\n    ${a.join("\n    ")}\n  ${outcome.sql}`;
}

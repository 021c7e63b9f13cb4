import { quoteIdentifier, quoteText } from "../../io/duckdb/duckdb.ts";
import { KqlRefused, type KqlNames, type KqlRequest, type KqlTranslation, type KqlType } from "./contract.ts";
import { loadLibrary } from "./library.ts";

type Diagnostic = { Code: string; Message: string; Start: number };

/* oxlint-disable typescript/no-explicit-any */
function kusto(): any {
  loadLibrary();
  return globalThis as any;
}

export function namesOf(text: string): KqlNames {
  kusto();
  return { tables: [/^\s*(\w+)\s*\|/.exec(text)?.[1] ?? []].flat(), needsAllTables: false };
}

const TYPES = new Map<string, KqlType>([
  ["timestamp", "datetime"],
  ["dynamic", "dynamic"],
  ["vector", "dynamic"],
]);

function placeOf(text: string, start: number): { line: number; column: number } {
  const before = text.slice(0, start).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

export function translate({ text, tables, tableNames }: KqlRequest): KqlTranslation {
  const { Kusto, Bridge } = kusto();
  const code = /let /.test(text)
    ? Kusto.Language.KustoCode.ParseAndAnalyze(text, Kusto.Language.GlobalState.Default)
    : Kusto.Language.KustoCode.Parse(text);
  const [first] = Bridge.toArray(code.GetDiagnostics()) as Diagnostic[];
  if (first !== undefined)
    throw new KqlRefused({ code: "parse_error", message: first.Message, ...placeOf(text, first.Start) });
  const print = /^\s*print\s+(\w+)\s*=\s*(\d+)\s*$/.exec(text);
  if (print !== null) {
    const [, name = "", value = ""] = print;
    const sql = `SELECT CAST(${value} AS BIGINT) AS ${quoteIdentifier(name)}`;
    return { kind: "query", sql, columns: [{ name, type: "long" }], macros: [] };
  }
  const take = /^\s*(\w+)\s*\|\s*take\s+(\d+)\s*(\|\s*render\s+(\w+))?\s*$/.exec(text);
  const table = tables.find(({ name }) => name === take?.[1]);
  if (take === null) throw new KqlRefused({ code: "invalid_query", message: "not supported", line: 1, column: 1 });
  if (table === undefined) {
    const [suggestion] = tableNames;
    const failure = { code: "invalid_query", message: `there is no table ${quoteText(take[1] ?? "")}` } as const;
    throw new KqlRefused({ ...failure, line: 1, column: 1, ...(suggestion !== undefined && { suggestion }) });
  }
  const columns = table.columns.map(({ name, type }) => {
    return { name, type: TYPES.get(type.kind) ?? (type.kind as KqlType) };
  });
  const items = columns.map(({ name, type }) => {
    const quoted = quoteIdentifier(name);
    return `${type === "dynamic" ? `CAST(${quoted} AS JSON)` : quoted} AS ${quoted}`;
  });
  const sql = `SELECT ${items.join(", ")} FROM ${quoteIdentifier(table.name)} LIMIT ${take[2]}`;
  const render = take[4] === undefined ? {} : { render: { kind: take[4], properties: {} } };
  return { kind: "query", sql, columns, macros: [], ...render };
}

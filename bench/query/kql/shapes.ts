import type { ScalarTypeName } from "../../../src/format/types.ts";
import { arrayOf, library } from "../../../src/query/kql/bind/library.ts";
import type { KqlTable } from "../../../src/query/kql/contract.ts";

type Diagnostic = { Severity: string; Code: string; Message: string; Start: number; Length: number };

const ROUNDS = 12;

/**
 * Tables that a text may mean: for a text of the world there are none here. Names that the binder does not know as tables
 * become tables, those that it does not know as columns become columns of all of them, and what it wants of their types,
 * they get.
 */
export function shapesOf(text: string): KqlTable[] {
  const tables = new Set<string>();
  const columns = new Map<string, ScalarTypeName>();
  for (let round = 0; round < ROUNDS; round++) {
    let isNew = false;
    for (const { Message, Start, Length } of diagnosticsOf(text, tables, columns)) {
      const name = nameIn(text.slice(Start, Start + Length));
      if (name === undefined) continue;
      if (/does not refer to any known table/.test(Message)) isNew = addTo(tables, name) || isNew;
      else if (/does not refer to any known column/.test(Message)) {
        isNew ||= !columns.has(name);
        if (!columns.has(name)) columns.set(name, typeOf(name));
      } else isNew = retype(columns, name, Message) || isNew;
    }
    if (!isNew) break;
  }
  return [...tables].map((name) => ({
    name,
    columns: [...columns].map(([column, kind]) => ({ name: column, type: { kind } })),
  }));
}

function addTo(set: Set<string>, name: string): boolean {
  if (set.has(name)) return false;
  set.add(name);
  return true;
}

/** What a column of that name holds in the schemas that such queries are written for. */
function typeOf(name: string): ScalarTypeName {
  if (/(^timestamp|time(generated|stamp)?|date|datetime|_t)$/i.test(name)) return "timestamp";
  if (
    /^(additionalfields|.*properties|.*details|.*resources|.*policies|entities|.*info|tags|.*_dynamic)$/i.test(name)
  ) {
    return "dynamic";
  }
  if (/(count|size|port|bytes|_d|duration|number)$/i.test(name)) return "long";
  return "string";
}

const WANTED: readonly [RegExp, ScalarTypeName][] = [
  [/datetime/, "timestamp"],
  [/dynamic|bag|array/, "dynamic"],
  [/number|summable|integer|int, long|long|real/, "long"],
  [/bool/, "bool"],
  [/string/, "string"],
];

const retyped = new WeakMap<Map<string, ScalarTypeName>, Set<string>>();

/** Each once: a column that is wanted as two types stays as it is then. */
function retype(columns: Map<string, ScalarTypeName>, name: string, message: string): boolean {
  const done = retyped.get(columns) ?? new Set();
  retyped.set(columns, done);
  const wanted = WANTED.find(([words]) => words.test(message))?.[1];
  if (wanted === undefined || !columns.has(name) || columns.get(name) === wanted || done.has(name)) return false;
  done.add(name);
  columns.set(name, wanted);
  return true;
}

/** A name as it is written, or the first of a path. */
function nameIn(text: string): string | undefined {
  const bracketed = /^\[\s*(["'])(.*?)\1\s*\]/.exec(text);
  if (bracketed !== null) return bracketed[2];
  return /^[\p{L}_]\w*/u.exec(text)?.[0];
}

function diagnosticsOf(
  text: string,
  tables: ReadonlySet<string>,
  columns: ReadonlyMap<string, ScalarTypeName>,
): Diagnostic[] {
  const { KustoCode, GlobalState, Symbols } = library();
  const own = [...tables].map(
    (name) =>
      new Symbols.TableSymbol.$ctor4(
        name,
        [...columns].map(([column, kind]) => {
          const type = Symbols.ScalarTypes.GetSymbol(kind === "timestamp" ? "datetime" : kind);
          return new Symbols.ColumnSymbol(column, type, null, null, null, null);
        }),
      ),
  );
  const database = new Symbols.DatabaseSymbol.ctor("corpus", own);
  const code = KustoCode.ParseAndAnalyze(text, GlobalState.Default?.WithDatabase(database) ?? null);
  return arrayOf<Diagnostic>(code?.GetDiagnostics()).filter(({ Severity }) => Severity === "Error");
}

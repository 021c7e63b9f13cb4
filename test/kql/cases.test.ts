import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ingest, type ErrorBody } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { CASE_FILES } from "./all-cases.test-kit.ts";
import type { KqlCase, KqlValue } from "./cases.test-kit.ts";

/**
 * Every case of `cases/`, asked of one server over HTTP. A test has all cases of one function, operator or rule. The
 * database has one table, `events`, of one row.
 */
/** More would only wait for the processor. */
const IN_FLIGHT = 12;

let engine: Engine;
let removeHome: () => Promise<void>;
let free = IN_FLIGHT;
const waiting: (() => void)[] = [];

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home, env: { ENGINE_KQL_WARM: "true", ENGINE_QUERY_SLOW_MS: "0" } });
  await ingest(
    engine.url,
    "events",
    '{"at":"2024-05-01T12:00:00.123456789Z","label":"a","body":"one","props":{"n":1}}',
  );
});

afterAll(async () => {
  await engine?.stop();
  await removeHome();
});

test("every file of cases is run", () => {
  const names = readdirSync(new URL("cases/", import.meta.url)).map((name) => name.replace(/\.ts$/, ""));
  expect(Object.keys(CASE_FILES).toSorted()).toEqual(names.toSorted());
});

describe.each(Object.entries(CASE_FILES))("%s", (_path, lists) => {
  const abouts = Object.values(lists).flatMap((list) => Object.entries(list));
  test.concurrent.each(abouts)("%s", { timeout: 120_000 }, async (_about, cases) => {
    const problems = await Promise.all(cases.map((one) => problemOf(one)));
    expect(problems.filter((problem) => problem !== undefined).join("\n\n")).toBe("");
  });
});

/** What is wrong with the answer, with the query; undefined when it is right. */
async function problemOf(one: KqlCase): Promise<string | undefined> {
  const problem = "refused" in one ? await refusalProblem(one) : await answerProblem(one);
  return problem === undefined ? undefined : `${one.query}\n${problem}`;
}

async function refusalProblem({ query, refused }: Extract<KqlCase, { refused: unknown }>): Promise<string | undefined> {
  const { status, text } = await ask(query);
  if (status === 200) return `is answered: ${text}`;
  const { error } = JSON.parse(text) as ErrorBody;
  const { message, ...exact } = refused;
  const isIt = Object.entries(exact).every(([key, value]) => error[key as "code"] === value);
  return isIt && error.message.includes(message) ? undefined : `expected ${shown(refused)}\nfound    ${text}`;
}

async function answerProblem(one: Extract<KqlCase, { rows: unknown }>): Promise<string | undefined> {
  const { status, text } = await ask(one.query);
  if (status !== 200) return `is refused: ${text}`;
  const order = one.unordered === true ? (rows: readonly KqlValue[]) => rows.toSorted(byText) : same;
  const [found, expected] = [order(rowsOf(text)), order(one.rows)];
  if (!isSame(found, expected)) return `expected ${shown(expected)}\nfound    ${shown(found)}`;
  return one.types === undefined ? undefined : await typesProblem(one.query, one.types);
}

async function typesProblem(query: string, types: Readonly<Record<string, string>>): Promise<string | undefined> {
  const { status, text } = await ask(`${query}\n| getschema | project ColumnName, ColumnType`);
  if (status !== 200) return `its schema is refused: ${text}`;
  const found = rowsOf(text).map((row) => Object.values(row as object).join(": "));
  const expected = Object.entries(types).map((column) => column.join(": "));
  return found.join() === expected.join() ? undefined : `expected ${expected.join(", ")}\nfound    ${found.join(", ")}`;
}

async function ask(text: string): Promise<{ status: number; text: string }> {
  if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
  else free--;
  try {
    const headers = { "Content-Type": "application/x-kql" };
    const response = await fetch(`${engine.url}/v1/query`, { method: "POST", headers, body: text });
    return { status: response.status, text: await response.text() };
  } finally {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  }
}

function rowsOf(text: string): KqlValue[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line, exactInteger as (key: string, value: unknown) => unknown) as KqlValue);
}

/** Integers that a number cannot hold keep all their digits. */
function exactInteger(_key: string, value: unknown, { source = "" }: { source?: string }): unknown {
  return typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? BigInt(source) : value;
}

/** As `toEqual`, but for the last digits of a real number, and the sign of zero. */
function isSame(found: unknown, expected: unknown): boolean {
  if (typeof found === "number" && typeof expected === "number") {
    return found === expected || Math.abs(found - expected) <= 1e-12 * Math.max(Math.abs(found), Math.abs(expected));
  }
  if (typeof found !== "object" || typeof expected !== "object" || found === null || expected === null) {
    return found === expected;
  }
  if (Array.isArray(found) !== Array.isArray(expected)) return false;
  const [keys, wanted] = [Object.keys(found), Object.keys(expected)];
  const of = (value: object, key: string): unknown => (value as Record<string, unknown>)[key];
  return (
    keys.length === wanted.length && wanted.every((key) => key in found && isSame(of(found, key), of(expected, key)))
  );
}

function same<T>(rows: T): T {
  return rows;
}

function byText(a: KqlValue, b: KqlValue): number {
  return shown(sorted(a)) < shown(sorted(b)) ? -1 : 1;
}

function sorted(value: KqlValue): KqlValue {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) => (typeof one === "bigint" ? `${one}n` : one)) ?? "nothing";
}

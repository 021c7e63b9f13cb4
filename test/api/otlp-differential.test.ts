import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../src/core/errors.ts";
import { seededRandom } from "../../src/core/random.ts";
import { RequestMaker } from "../../src/format/otlp/generate.test-kit.ts";
import { ARRIVED_NS, scanLogs, type Cells } from "../../src/format/otlp/scan.test-kit.ts";
import { installed, python } from "./otlp.test-kit.ts";

/**
 * The reader of OTLP against the official protobuf classes, on requests of every odd kind: the rows are those that the
 * rules of `docs/otlp.md` make of what the classes have read, and what they refuse is refused here.
 */
type Value = null | boolean | string | ["object", [string, Value][]] | ["int" | "double", string] | Value[];
type Read = Record<"resource" | "scope" | "attributes" | "body", Value> &
  Record<"flags" | "dropped" | "severity_number" | "resource_dropped" | "scope_dropped", number> &
  Record<
    | "time"
    | "observed"
    | "event"
    | "severity_text"
    | "trace_id"
    | "span_id"
    | "resource_url"
    | "scope_url"
    | "scope_name"
    | "scope_version",
    string
  >;

function jsonOf(value: Value): string {
  if (!Array.isArray(value)) return JSON.stringify(value);
  const [kind, what] = value as ["object" | "int" | "double", never];
  if (kind === "int") return what;
  if (kind === "double") {
    const number = Buffer.from(what, "hex").readDoubleBE();
    return Object.is(number, -0) ? "-0" : String(number);
  }
  if (kind === "object") {
    return `{${(what as [string, Value][]).map(([key, one]) => `${JSON.stringify(key)}:${jsonOf(one)}`).join(",")}}`;
  }
  return `[${(value as Value[]).map(jsonOf).join(",")}]`;
}

/** As a text column has it. */
function textOf(value: Value): string | undefined {
  if (value === null) return undefined;
  return typeof value === "string" ? value : jsonOf(value);
}

const FIRST_UNFIT = 2n ** 63n;

function cellsOf(read: Read): Cells {
  const [time, observed] = [BigInt(read.time), BigInt(read.observed)];
  const props = [
    ...(read.resource_dropped === 0 ? [] : [`"resource_dropped_attributes":${read.resource_dropped}`]),
    ...(read.scope_dropped === 0 ? [] : [`"scope_dropped_attributes":${read.scope_dropped}`]),
    ...(time < FIRST_UNFIT ? [] : [`"time_unix_nano":${time}`]),
    ...(observed < FIRST_UNFIT ? [] : [`"observed_at":${observed}`]),
  ];
  const readable = [time, observed].find((ns) => ns > 0n && ns < FIRST_UNFIT);
  const objectOf = (value: Value) => ((value as [string, unknown[]])[1].length === 0 ? undefined : jsonOf(value));
  const members = (read.resource as ["object", [string, Value][]])[1];
  const cells = {
    at: readable ?? ARRIVED_NS,
    label: read.event || "log",
    body: textOf(read.body),
    props: props.length === 0 ? undefined : `{${props.join(",")}}`,
    observed_at: observed > 0n && observed < FIRST_UNFIT ? observed : undefined,
    severity_number: read.severity_number || undefined,
    severity_text: read.severity_text || undefined,
    trace_id: read.trace_id || undefined,
    span_id: read.span_id || undefined,
    flags: read.flags === 0 ? undefined : BigInt(read.flags),
    service_name: textOf(members.find(([key]) => key === "service.name")?.[1] ?? null),
    scope_name: read.scope_name || undefined,
    scope_version: read.scope_version || undefined,
    resource: objectOf(read.resource),
    scope: objectOf(read.scope),
    attributes: objectOf(read.attributes),
    dropped_attributes: read.dropped === 0 ? undefined : BigInt(read.dropped),
    resource_schema_url: read.resource_url || undefined,
    scope_schema_url: read.scope_url || undefined,
  };
  return Object.fromEntries(Object.entries(cells).filter(([, value]) => value !== undefined));
}

async function readByPython(bodies: readonly Buffer[]): Promise<(Read[] | null)[]> {
  const framed = bodies.flatMap((body) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(body.length);
    return [length, body];
  });
  const out = await python(["rows"], Buffer.concat(framed));
  return out
    .toString()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Read[] | null);
}

/** What a request becomes here, or why it is refused. */
function readHere(body: Buffer): { cells?: ReturnType<typeof scanLogs>["cells"]; refusal?: string } {
  try {
    return scanLogs(body);
  } catch (error) {
    if (error instanceof EngineError && error.code === "bad_request_body") return { refusal: error.message };
    throw error;
  }
}

/** A request that may be damaged, as it is read there and here. */
function comparison(body: Buffer, there: Read[] | null) {
  const { cells: here, refusal = "" } = readHere(body);
  const hex = hexOf(body);
  const expected = there?.map(cellsOf);
  // They look at all text, also at that of keys and records which are given up; here that is no reason to refuse a request.
  const isOfText = here !== undefined && there === null && body.toString("utf8").includes("\ufffd");
  // In groups, which they skip, they take fields of the number 0, which there are none of.
  const isOfGroup = there !== null && refusal.includes("a field has no number");
  const disagrees = !isOfText && !isOfGroup && !isDeepStrictEqual(here, expected);
  return { hex, here, expected, disagrees };
}

const hexOf = (body: Buffer) => body.toString("hex");

describe.skipIf(installed.status !== 0)("the official protobuf classes", { timeout: 300_000 }, () => {
  test("read valid requests as they are read here", async () => {
    const maker = new RequestMaker(seededRandom(drawnSeed()));
    const bodies = Array.from({ length: 1_500 }, () => maker.request());
    const read = await readByPython(bodies);
    let records = 0;
    for (const [i, body] of bodies.entries()) {
      const expected = read[i];
      if (expected === undefined || expected === null) throw new Error(`refused: ${hexOf(body)}`);
      const here = readHere(body);
      expect({ body: hexOf(body), cells: here?.cells }).toEqual({ body: hexOf(body), cells: expected.map(cellsOf) });
      records += expected.length;
    }
    expect(records).toBeGreaterThan(1_000);
  });

  test("refuse what is refused here, and nothing else but text that is no UTF-8", async () => {
    const maker = new RequestMaker(seededRandom(drawnSeed()));
    const bodies = Array.from({ length: 3_000 }, () => maker.damaged(maker.request()));
    const read = await readByPython(bodies);
    const compared = bodies.map((body, i) => comparison(body, read[i] ?? null));
    expect(compared.filter(({ disagrees }) => disagrees)).toEqual([]);
    expect(compared.filter(({ here }) => here === undefined).length).toBeGreaterThan(500);
  });
});

import { readFile } from "node:fs/promises";
import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { ROLE_NAMES } from "../../../src/config/kinds.ts";
import { SHAPES, type ShapeName } from "../../support/shapes.ts";
import { duration, rate, size } from "./units.ts";

/** A load as a TOML file describes it: whom it asks, what it sends, how much of it, and for how long. */

const SHAPE_NAMES = Object.keys(SHAPES) as [ShapeName, ...ShapeName[]];

const count = (example: number) => {
  const message = `takes a whole number above 0, such as ${example}`;
  return z.int(message).positive(message);
};
const SHARE_TEXT = "takes the part of all requests, above 0 and at most 1, such as 0.5";
const share = z.number(SHARE_TEXT).positive(SHARE_TEXT).max(1, SHARE_TEXT).default(1);
const flag = z.boolean("takes true or false");
const oneOf = <T extends string>(names: readonly [T, ...T[]]) =>
  z.enum(names, `takes one of ${names.map((name) => `"${name}"`).join(", ")}`);
const section = "takes a section of keys";

const data = z.strictObject(
  {
    /** Of the rows, which are seeded. */
    shape: oneOf(SHAPE_NAMES).default("logs"),
    /** They are called `load_0`, `load_1`, …, and bodies go to them in turn. */
    tables: count(1).default(1),
    /** Rows that each table has before the load begins. */
    rows_before: z.int("takes a whole number such as 100000").nonnegative("takes a number not below 0").default(0),
  },
  section,
);

const ingest = z
  .strictObject(
    {
      share,
      /** Of NDJSON, before it is compressed. */
      body: size.optional(),
      rows: count(10).optional(),
      /** Whether every request has an idempotency key of its own. */
      keys: flag.default(true),
      compression: oneOf(["none", "gzip", "zstd"]).default("none"),
    },
    section,
  )
  .refine((own) => (own.body === undefined) !== (own.rows === undefined), {
    message: 'takes either body (such as "1 MiB") or rows (such as 10): write one of them',
  });

const query = z.strictObject(
  {
    share,
    name: z.string("takes a text").min(1, "takes a text").optional(),
    sql: z.string('takes SQL, such as "SELECT 1"'),
  },
  section,
);

const profile = z
  .strictObject({
    role: oneOf(ROLE_NAMES).default("all_in_one"),
    /** How rows are sent: as NDJSON to `/v1/ingest`, or as OTLP logs to `/v1/logs`. */
    protocol: oneOf(["http", "otlp"]).default("http"),
    tls: flag.default(false),
    /** Connections; each carries one request at a time. */
    clients: count(4),
    rate,
    arrivals: oneOf(["even", "poisson"]).default("even"),
    duration,
    data: data.prefault({}),
    ingest: ingest.optional(),
    queries: z.array(query, "takes sections, written [[queries]]").default([]),
    health: z.strictObject({ share }, section).optional(),
  })
  .superRefine((own, context) => {
    const refuse = (path: string[], message: string) => context.addIssue({ code: "custom", path, message });
    const shares = [own.ingest, ...own.queries, own.health].flatMap((one) => one?.share ?? []);
    const sum = shares.reduce((total, one) => total + one, 0);
    if (shares.length === 0) refuse(["ingest"], "is missing, as are [[queries]] and [health]: write one of them");
    else if (Math.abs(sum - 1) > 1e-6) {
      refuse(["share"], `adds up to ${Number(sum.toFixed(6))} over [ingest], [[queries]] and [health]: make it 1`);
    }
    if (own.protocol === "otlp" && own.ingest?.rows === undefined) {
      refuse(["ingest", "rows"], 'is missing: with protocol = "otlp" it says how many records a request has');
    }
    if (own.protocol === "otlp" && own.data.tables > 1)
      refuse(["data", "tables"], "must be 1: OTLP logs go to one table");
  });

export type Profile = z.output<typeof profile>;

/** Throws a sentence with the file, the key, and what the key takes. */
export async function readProfile(path: string): Promise<Profile> {
  return parseProfile(await readFile(path, "utf8"), path);
}

/** `file` is what errors call it. */
export function parseProfile(text: string, file: string): Profile {
  const parsed = profile.safeParse(tomlIn(text, file));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${file}: ${sentenceOf(issue)}`);
}

function tomlIn(text: string, file: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [why] = error.message.split("\n", 1);
    throw new Error(`${file}: line ${error.line}: ${why}; mend the TOML there`, { cause: error });
  }
}

function sentenceOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return "is not a profile";
  const path = issue.path.map(String);
  if (issue.code !== "unrecognized_keys") return `${path.join(".")} ${issue.message}`;
  const unknown = issue.keys.map((key) => [...path, key].join(".")).join(", ");
  return `${unknown} is not a key of a profile: use one of ${keysBelow(path[0]).join(", ")}`;
}

/** The keys of a section, or of the profile itself. */
function keysBelow(name: string | undefined): string[] {
  const sections = { data, ingest, queries: query, health: z.object({ share }) } as const;
  const found = name === undefined ? profile : sections[name as keyof typeof sections];
  return Object.keys(found.shape);
}

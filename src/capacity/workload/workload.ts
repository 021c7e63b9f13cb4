import { readFile } from "node:fs/promises";
import { z } from "zod";
import { parseTomlText } from "../../config/toml.ts";
import { messageOf } from "../../core/errors.ts";
import { DEPLOYMENTS, QUERY_CLASSES } from "../costs/costs.ts";
import { parseBytes, parsePerSecond, parseSeconds } from "../units.ts";

/**
 * What has to be carried: a TOML file. Amounts have their units (`"340 B"`, `"90 d"`, `"20/s"`), so that none is taken for
 * another.
 */

/** The parser's sentence becomes the refusal. */
function united<T>(parser: (text: string) => T) {
  return z.string().transform((text, context) => {
    try {
      return parser(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: messageOf(error) });
      return z.NEVER;
    }
  });
}

const bytes = united(parseBytes);
const seconds = united(parseSeconds);
const perSecond = united(parsePerSecond);
const name = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}$/, "takes 1 to 40 of a–z, 0–9, _ and -, and begins with a letter");
const share = z.number().gt(0).lte(1);

const deployment = z.strictObject({
  mode: z.enum(DEPLOYMENTS),
  zones: z.int().min(1).max(6).default(1),
  /** What may fail at the peak without rows refused or answers missing. */
  survive: z.enum(["nothing", "node", "zone"]).default("nothing"),
  /** Share of a role's cores that may be busy at the peak with everything there. */
  max_utilization: share.default(0.7),
  /** From an acknowledgement until queries see the rows, as it usually is. */
  freshness: seconds.optional(),
  /** Cores of one node at most. */
  max_cores: z.int().min(1).max(192).default(16),
});

const ingest = z.strictObject({
  name,
  tables: z.int().positive().default(1),
  /** Whose costs they have; one of the costs' file. */
  shape: z.string().min(1),
  rows: perSecond,
  bytes_per_row: bytes,
  rows_per_request: z.int().positive(),
  clients: z.int().positive(),
  /** How much more comes at the worst time than on average, and for how long; merges may be late for two hours. */
  peak_factor: z.number().min(1).default(1),
  peak_length: seconds.default(3_600),
  retention: seconds,
  p99: seconds.optional(),
});

const query = z.strictObject({
  name,
  class: z.enum(QUERY_CLASSES),
  /** Of the group of tables that it reads one of. */
  reads: name,
  rate: perSecond,
  /** How much of the newest time it spans. */
  range: seconds,
  /** At the worst time. */
  concurrency: z.int().positive(),
  peak_factor: z.number().min(1).default(1),
  /** Of what it reads, how much the node has in its cache. */
  cached: z.number().min(0).max(1).default(1),
  p99: seconds.optional(),
});

export const workloadSchema = z
  .strictObject({
    name,
    deployment,
    ingest: z.array(ingest).min(1),
    queries: z.array(query).default([]),
    sandboxes: z.strictObject({ at_once: z.int().nonnegative(), created: perSecond, memory: bytes }).optional(),
    jobs: z.strictObject({ rate: perSecond, takes: seconds, cpu: z.number().min(0).default(0) }).optional(),
  })
  .superRefine((workload, context) => {
    const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: "custom", path, message });
    const groups = workload.ingest.map((each) => each.name);
    for (const [i, each] of groups.entries()) {
      if (groups.indexOf(each) !== i) refuse(["ingest", i, "name"], `${each} is there twice; give each its own name`);
    }
    for (const [i, { reads }] of workload.queries.entries()) {
      if (!groups.includes(reads)) refuse(["queries", i, "reads"], `${reads} is none of ${groups.join(", ")}`);
    }
    const { mode, zones, survive } = workload.deployment;
    if (survive === "zone" && zones < 2) refuse(["deployment", "zones"], "the loss of a zone needs 2 or more");
    if (mode === "single" && survive !== "nothing")
      refuse(["deployment", "survive"], `one process survives no loss of a ${survive}; take mode sync or staged`);
    if (mode === "single" && workload.sandboxes !== undefined && workload.sandboxes.at_once > SANDBOXES_PER_NODE)
      refuse(["sandboxes", "at_once"], `one process runs ${SANDBOXES_PER_NODE} at most; take mode sync or staged`);
  });
export type Workload = z.output<typeof workloadSchema>;
export type IngestStream = Workload["ingest"][number];
export type QueryStream = Workload["queries"][number];

/** What a node runs at once unless `ENGINE_SANDBOX_MAX_PER_NODE` says otherwise. */
export const SANDBOXES_PER_NODE = 250;

/** Throws one sentence with the file, the key, what is wrong with it, and what would be right. */
export async function readWorkload(path: string): Promise<Workload> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new Error(`cannot read the workload: ${messageOf(error)}`, { cause: error });
  }
  return parseWorkload(path, text);
}

/** The same of a text; `path` is for the message. */
export function parseWorkload(path: string, text: string): Workload {
  return parsedToml(path, text, workloadSchema);
}

/** A TOML text as the schema has it. Throws one sentence with the file and the key. */
export function parsedToml<S extends z.ZodType>(path: string, text: string, schema: S): z.output<S> {
  const parsed = schema.safeParse(parseTomlText(path, text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${path}: ${issue === undefined ? "is not valid" : issueText(issue)}`);
}

function issueText(issue: z.core.$ZodIssue): string {
  const key = pathText(issue.path);
  if (issue.code === "unrecognized_keys") {
    const names = issue.keys.map((each) => pathText([...issue.path, each]));
    return `${names.join(", ")}: no such key; take it out or see the documentation for its name`;
  }
  return key === "" ? issue.message : `${key}: ${issue.message}`;
}

/** `ingest[0].rows`. */
function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .replace(/^\./, "");
}

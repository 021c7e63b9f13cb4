import { z } from "zod";

/**
 * What the commands tell the supervisor of a local deployment (`desired.json`), and what it says back (`state.json`).
 * Each file has one writer, and is replaced whole.
 */
export const DESIRED_FILE = "local/desired.json";
export const STATE_FILE = "local/state.json";

const format = z.literal(1);
const processName = z.string().regex(/^[a-z]+(-[0-9]+)?$/);

const programSchema = z.strictObject({
  name: processName,
  /** Programs of a lower rank serve before those of a higher one start, and end after them. */
  rank: z.int().min(0).max(9),
  command: z.tuple([z.string()], z.string()),
  env: z.record(z.string(), z.string()),
  log: z.string(),
  probe: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("http"), url: z.string() }),
    z.strictObject({ kind: z.literal("command"), command: z.tuple([z.string()], z.string()) }),
  ]),
  stopSignal: z.enum(["SIGTERM", "SIGINT"]),
  stopTimeoutMs: z.int().positive(),
  /** Of everything above and of the program itself: a process with another one is restarted. */
  hash: z.string(),
});
export type ProgramSpec = z.infer<typeof programSchema>;

export const desiredSchema = z.strictObject({
  format,
  generation: z.int(),
  isRunning: z.boolean(),
  programs: z.array(programSchema),
});
export type Desired = z.infer<typeof desiredSchema>;

const knownSchema = { pid: z.int().min(2), identity: z.string() };

const processSchema = z.strictObject({
  ...knownSchema,
  hash: z.string(),
  version: z.string(),
  /** Starts since `up`; the first is no restart. */
  restarts: z.int(),
});
export type ProcessState = z.infer<typeof processSchema>;

export const stateSchema = z.strictObject({
  format,
  supervisor: z.strictObject({ ...knownSchema, version: z.string() }),
  /** The newest generation that was reached: all run as they should, and are healthy. */
  settled: z.int(),
  processes: z.record(processName, processSchema),
  /** How the last run of a process ended that is not running now. */
  failures: z.record(processName, z.string()),
});
export type SupervisorState = z.infer<typeof stateSchema>;

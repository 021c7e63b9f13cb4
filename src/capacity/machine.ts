import { z } from "zod";

/** What figures depend on beside the program, measured within the run that they are of. */
export const machineSchema = z.object({
  processor: z.string(),
  cores: z.int(),
  /** Cores that the control group allows; null for all. */
  cpuQuota: z.number().nullable(),
  memoryBytes: z.int(),
  kernel: z.string(),
  node: z.string(),
  /** Of the folder where data is written: the magic number of statfs(2), in hexadecimal. */
  fileSystem: z.string(),
  fsyncMs: z.object({ p50: z.number(), p99: z.number() }),
  sequentialWriteMiBPerSecond: z.number(),
  /** Copied by one thread; twice as much passes the memory's bus. */
  memoryCopyMiBPerSecond: z.number(),
  /** Rounds of a fixed loop of integers, in millions a second. */
  singleCoreMops: z.number(),
});
export type Machine = z.output<typeof machineSchema>;

import { readFile } from "node:fs/promises";
import { z } from "zod";
import { messageOf } from "../core/errors.ts";
import type { Plan } from "./model/plan.ts";
import { GIB } from "./units.ts";
import { parsedToml } from "./workload/workload.ts";

/** Prices are their owner's file: they differ by contract and place, and change. Nothing has a price of its own here. */
const price = z.number().nonnegative();

const pricesSchema = z.strictObject({
  currency: z.string().min(1).max(8),
  /** Of one hour. */
  core_hour: price.optional(),
  memory_gib_hour: price.optional(),
  postgres_core_hour: price.optional(),
  /** Of one month. */
  disk_gib_month: price.optional(),
  postgres_gib_month: price.optional(),
  store_gib_month: price.optional(),
  /** Of a thousand requests. */
  put_thousand: price.optional(),
  get_thousand: price.optional(),
  list_thousand: price.optional(),
});
export type Prices = z.output<typeof pricesSchema>;

export type Cost = {
  currency: string;
  /** Of one month, by what it is for. */
  lines: readonly { what: string; perMonth: number }[];
  perMonth: number;
  /** What the plan needs and the file has no price of. */
  unpriced: readonly string[];
};

/** Throws a sentence with the file and the key. */
export async function readPrices(path: string): Promise<Prices> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new Error(`cannot read the prices: ${messageOf(error)}`, { cause: error });
  }
  return parsedToml(path, text, pricesSchema);
}

const HOURS_PER_MONTH = 730;
/** Catalogs run with a standby. */
const POSTGRES_COPIES = 2;

export function costOf(plan: Plan, prices: Prices): Cost {
  const unpriced: string[] = [];
  const lines: Cost["lines"][number][] = [];
  const add = (what: string, amount: number, each: number | undefined) => {
    if (amount === 0) return;
    if (each === undefined) unpriced.push(what);
    else lines.push({ what, perMonth: amount * each });
  };
  const all = (of: (role: Plan["roles"][number]) => number) =>
    plan.roles.reduce((sum, role) => sum + role.nodes * of(role), 0);
  add("cores", all(({ cores }) => cores) * HOURS_PER_MONTH, prices.core_hour);
  add("memory", (all(({ memoryBytes }) => memoryBytes) / GIB) * HOURS_PER_MONTH, prices.memory_gib_hour);
  add("disks of nodes", all(({ diskBytes }) => diskBytes) / GIB, prices.disk_gib_month);
  if (plan.postgres !== null) {
    const { storedBytes, replacedBytes, catalogBytes } = plan.storage;
    add("PostgreSQL", plan.postgres.cores * POSTGRES_COPIES * HOURS_PER_MONTH, prices.postgres_core_hour);
    add("disk of PostgreSQL", ((catalogBytes ?? 0) * POSTGRES_COPIES) / GIB, prices.postgres_gib_month);
    add("object storage", (storedBytes + replacedBytes) / GIB, prices.store_gib_month);
  }
  const kinds = { put: prices.put_thousand, get: prices.get_thousand, list: prices.list_thousand };
  for (const [kind, each] of Object.entries(kinds)) {
    add(`${kind} requests`, (plan.requestsPerMonth?.[kind] ?? 0) / 1_000, each);
  }
  const perMonth = lines.reduce((sum, line) => sum + line.perMonth, 0);
  return { currency: prices.currency, lines, perMonth, unpriced };
}

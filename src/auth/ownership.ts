import type { RecordStore, Statement } from "../db/records.ts";
import { EngineError } from "../core/errors.ts";
import type { AuditLog, Origin } from "./audit.ts";
import type { OwnedTable } from "./owned-table.ts";
import { OWNED_TABLES } from "./owned-tables.ts";

export type OwnershipOptions = { records: RecordStore; audit: AuditLog; tables?: readonly OwnedTable[] };

/** How many records of each table went over. */
export type Transferred = { table: string; count: number };

const OWNER = /^[^\p{C}\p{Z}]+( [^\p{C}\p{Z}]+)*$/u;
const MAX_OWNER_CHARS = 1_300;

/** Hands the records of one owner to another one: of a token that got another name, of a user who left. */
export class Ownership {
  readonly #options: OwnershipOptions;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /**
   * All of them or none. Who may do so is for the caller to check. Throws `bad_request_body` for a text that is no owner,
   * `conflict` where both have a record of which an owner has one: a schedule of the same name, for example.
   */
  async transfer(from: string, to: string, origin: Origin): Promise<Transferred[]> {
    checkOwner("from", from);
    checkOwner("to", to);
    if (from === to) throw new EngineError("bad_request_body", "to: it is the same owner");
    const { records, audit, tables = OWNED_TABLES } = this.#options;
    const clashes = tables.filter(({ unique }) => unique !== undefined);
    const details = { from, to };
    const outcome = await records.transact([
      ...clashes.map((table) => ({ ...clashOf(table, from, to), mustReturn: 0 })),
      ...tables.map(({ name, column }) => ({
        sql: `SELECT count(*) AS records FROM ${name} WHERE ${column} = ?`,
        values: [from],
      })),
      ...tables.map((table) => update(table, from, to)),
      audit.statement({ origin, action: "ownership.transfer", target: from, outcome: "ok", details }),
    ]);
    if (!outcome.done) {
      const { name = "", unique } = clashes[outcome.failed] ?? {};
      const same = `two records of ${name} with the same ${unique?.columns.join(", ") ?? ""}`;
      throw new EngineError("conflict", `${to} would have ${same}: delete one first`);
    }
    return tables.map(({ name }, i) => {
      const [row] = outcome.rows[clashes.length + i] ?? [];
      return { table: name, count: Number(row?.["records"] ?? 0) };
    });
  }
}

function checkOwner(field: string, owner: string): void {
  if (owner.length <= MAX_OWNER_CHARS && OWNER.test(owner)) return;
  throw new EngineError(
    "bad_request_body",
    `${field}: not an owner; one looks like ann, token:ci or https://issuer.example#subject`,
  );
}

/** A row where both owners have a record of which one may have one. */
function clashOf({ name, column, unique }: OwnedTable, from: string, to: string): Statement {
  const { columns = [], where = "1 = 1" } = unique ?? {};
  const keys = columns.map((key, i) => `${key} AS key_${i}`).join(", ");
  const of = `(SELECT ${keys} FROM ${name} WHERE ${column} = ? AND ${where})`;
  const same = columns.map((_, i) => `theirs.key_${i} = others.key_${i}`).join(" AND ");
  return { sql: `SELECT 1 AS one FROM ${of} AS theirs JOIN ${of} AS others ON ${same} LIMIT 1`, values: [from, to] };
}

function update(table: OwnedTable, from: string, to: string): Statement {
  const { name, column, also, unique } = table;
  const more = also?.(from, to);
  const set = more === undefined ? "" : `, ${more.set}`;
  const values = [to, ...(more?.values ?? []), from];
  const sql = `UPDATE ${name} SET ${column} = ?${set} WHERE ${column} = ?`;
  if (unique === undefined) return { sql, values };
  // Statements may run before it is known what the one before them returned: this one must not break the rule.
  const clash = clashOf(table, from, to);
  return { sql: `${sql} AND NOT EXISTS (${clash.sql})`, values: [...values, ...(clash.values ?? [])] };
}

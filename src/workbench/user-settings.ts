import type { Caller } from "../auth/caller.ts";
import { ownerOf } from "../auth/owner.ts";
import { EngineError } from "../core/errors.ts";
import { NOW, type RecordStore } from "../db/records.ts";
import { WORKBENCH_LIMITS } from "./limits.ts";

export type Settings = Readonly<Record<string, unknown>>;

/** One JSON object of each owner, in which pages keep how somebody likes them. The last who saves it wins. */
export class UserSettings {
  readonly #records: Pick<RecordStore, "rows" | "write">;

  constructor(records: Pick<RecordStore, "rows" | "write">) {
    this.#records = records;
  }

  /** Empty where nothing was saved. */
  async get(caller: Caller): Promise<Settings> {
    const sql = "SELECT value FROM user_settings WHERE kept_for = ?";
    const [row] = await this.#records.rows(sql, [ownerOf(caller)]);
    return row === undefined ? {} : (JSON.parse(String(row["value"])) as Settings);
  }

  /** In the place of all that was saved. Throws `body_too_large`. */
  async save(settings: Settings, caller: Caller): Promise<Settings> {
    const value = JSON.stringify(settings);
    const sizeBytes = Buffer.byteLength(value);
    const { settingsBytes } = WORKBENCH_LIMITS;
    if (sizeBytes > settingsBytes) {
      throw new EngineError(
        "body_too_large",
        `the settings have ${sizeBytes} bytes; at most ${settingsBytes} are kept`,
      );
    }
    const sql =
      "INSERT INTO user_settings (kept_for, value, updated_at_ms) VALUES (?, ?, ?) ON CONFLICT (kept_for) DO UPDATE SET " +
      "value = excluded.value, updated_at_ms = excluded.updated_at_ms";
    await this.#records.write({ sql, values: [ownerOf(caller), value, NOW] });
    return settings;
  }
}

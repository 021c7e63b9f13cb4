import type { SystemTable } from "../../../src/feature/system-table.ts";

/** `system.toys` */
export const TOYS: SystemTable = {
  name: "toys",
  columns: [
    { name: "name", type: { kind: "string" } },
    { name: "colour", type: { kind: "string" } },
  ],
  async *rows({ records }) {
    for (const { name, colour } of await records.rows("SELECT name, colour FROM toys ORDER BY name")) {
      yield { name: String(name), colour: typeof colour === "string" ? colour : undefined };
    }
  },
};

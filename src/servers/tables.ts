import type { Migration } from "../db/migration.ts";

/** `url`: where other servers reach this one; NULL where it answers nothing that they ask. */
export const SERVERS_MIGRATIONS: readonly Migration[] = [
  {
    name: "server addresses",
    sqlite: 37,
    postgres: 34,
    sql: {
      sqlite: "ALTER TABLE servers ADD COLUMN url text;",
      postgres: "ALTER TABLE engine.servers ADD COLUMN url text;",
    },
  },
];

import { useLocation } from "preact-iso";
import { requestJson } from "./api.ts";
import { text } from "./params.ts";
import { storage } from "./storage.ts";
import { useParams } from "./use-params.ts";
import { useQuery } from "./use-query.ts";

export type Column = { name: string; type: string; nullable?: boolean };
export type Table = { name: string; columns: Column[] };
export type Database = { name: string; tables: Table[] };

/** Databases, tables and columns that the caller may use. */
export function useSchema() {
  return useQuery<Database[]>({
    key: ["schema"],
    read: async (signal) => (await requestJson<{ databases: Database[] }>("/v1/catalog/schema", { signal })).databases,
  });
}

/** The tables of a database, whose name may be written in other cases; the same array for the same schema. */
export function tablesOf(databases: readonly Database[] | undefined, database: string): readonly Table[] | undefined {
  return databases?.find(({ name }) => name.toLowerCase() === database.toLowerCase())?.tables;
}

const PARAMS = { db: text() };

/** The database that pages are about: that of the address, else the one that was chosen last, else `default`. */
export function useDatabase(): [string, (name: string) => void] {
  const [{ db }, update] = useParams(PARAMS);
  const { data } = useSchema();
  const choose = (name: string) => {
    storage.set("database", name);
    update({ db: name });
  };
  return [db === "" ? usual(data ?? []) : db, choose];
}

function usual(databases: readonly Database[]): string {
  const known = (name: string | undefined) => name !== undefined && databases.some((one) => one.name === name);
  const last = storage.get("database");
  if (last !== undefined && known(last)) return last;
  return known("default") ? "default" : (databases[0]?.name ?? "default");
}

/** The address of a page, about the same database. */
export function usePageAddress(): (path: string) => string {
  const { query } = useLocation();
  const { db } = query;
  return (path) => `/ui/${path}${db === undefined || db === "" ? "" : `?db=${encodeURIComponent(db)}`}`;
}

import { LISTS, PASSWORDS, type Facts, type Part } from "./earlier.ts";

/** Rows of the table `late`. */
export const LATE_ROWS = 5;

const TYPES = "flag:bool, i:int, l:long, r:real, s:string, t:timestamp, d:dynamic, v:vector(3)";

type Json = Record<string, unknown>;

/** Fills a server of an earlier version with some of everything that it has, and notes what it says of it. */
export class Writer {
  stagedRows = 0;
  readonly #has: readonly Part[];
  readonly #engine: (...args: string[]) => void;
  readonly #answers: Facts["answers"] = [];
  readonly #lists: Facts["lists"] = {};
  #session = "";
  #token = "";
  #earlySnapshot = "";

  constructor(has: readonly Part[], engine: (...args: string[]) => void) {
    this.#has = has;
    this.#engine = engine;
  }

  facts(): Pick<Facts, "answers" | "lists" | "token" | "stagedRows"> {
    return { answers: this.#answers, lists: this.#lists, token: this.#token, stagedRows: this.stagedRows };
  }

  /** With extents in `tlm`: tables of both kinds, rows, users and their records. */
  async first(url: string): Promise<void> {
    await this.#signIn(url);
    this.#engine("create-table", "--name", "typed", "--schema", TYPES);
    const kept = [
      "--retention-days",
      "36500",
      ...(this.#has.includes("cluster columns") ? ["--cluster-by", "host"] : []),
    ];
    this.#engine("create-table", "--db", "logs", "--name", "lines", "--schema", "host:string, n:long", ...kept);
    await this.#ingest(url, "typed", typedRows(0, 60));
    await this.#ingest(url, "events", eventRows(0, 200));
    await this.#ingest(url, "lines", eventRows(0, 50), "logs");
    await this.#ingest(url, "late", eventRows(0, 1));
    for (let n = 0; n < 8; n++) {
      const snapshot = await this.#ingest(url, "merged", eventRows(n * 40, 40));
      if (n === 2) this.#earlySnapshot = snapshot;
    }
    if (this.#has.includes("jobs")) await this.#makeRecords(url);
  }

  /** With extents in Parquet, and columns that came later. */
  async second(url: string): Promise<void> {
    await this.#signIn(url);
    this.#engine("alter-table", "--table", "typed", "--add-column", "later:string");
    await this.#ingest(
      url,
      "typed",
      typedRows(60, 40).map((row) => Object.assign(row, { later: "yes" })),
    );
    await this.#ingest(
      url,
      "events",
      eventRows(200, 200).map((row) => Object.assign(row, { region: "north" })),
    );
    await this.#ingest(url, "late", eventRows(1, 1));
    if (this.#has.includes("deletion")) await this.#delete(url);
  }

  async stage(url: string): Promise<void> {
    await this.#signIn(url);
    await this.#ingest(url, "late", eventRows(2, LATE_ROWS));
  }

  /** Notes what the server answers. */
  async look(url: string): Promise<void> {
    const ask = async (sql: string, database = "default"): Promise<void> => {
      const headers = { "Content-Type": "application/sql", "X-Database": database };
      const answer = await this.#call(url, "POST", "/v1/query", sql, headers);
      this.#answers.push({ sql, database, answer });
    };
    await ask("SELECT * FROM typed ORDER BY i");
    await ask("SELECT * FROM events ORDER BY n");
    await ask("SELECT region, count(*) AS rows, sum(CAST(n AS BIGINT)) AS total FROM events GROUP BY 1 ORDER BY 1");
    await ask("SELECT host, count(*) AS rows, sum(n) AS total FROM lines GROUP BY host ORDER BY host", "logs");
    await ask("SELECT count(*) AS rows, sum(CAST(n AS BIGINT)) AS total, min(at) AS first FROM merged");
    if (this.#has.includes("time travel")) {
      await ask(`SELECT count(*) AS rows FROM merged AT (VERSION => ${this.#earlySnapshot})`);
    }
    for (const { path, part, fields } of LISTS) {
      if (!this.#has.includes(part)) continue;
      const found = itemsOf(JSON.parse(await this.#call(url, "GET", path)));
      this.#lists[path] = found.map((item) => pick(item, fields));
    }
  }

  async #signIn(url: string): Promise<void> {
    if (!this.#has.includes("users")) return;
    const body = { username: "root", password: PASSWORDS.root };
    this.#session = String((await this.#json(url, "/v1/auth/login", body))["access_token"]);
  }

  async #makeRecords(url: string): Promise<void> {
    await this.#json(url, "/v1/admin/users", { username: "ann", password: PASSWORDS.ann, role: "write" });
    const token = { name: "ci", role: "write", databases: ["default"] };
    this.#token = String((await this.#json(url, "/v1/auth/tokens", token))["token"]);
    const value = { kind: "pat", token: "a-token-of-twenty-characters" };
    await this.#json(url, "/v1/credentials", { label: "github", value, metadata: { team: "a" } });
    await this.#json(url, "/v1/jobs", { kind: "x.report", payload: { n: 1 }, database: "default" });
    const verify = { kind: "maintenance.verify_extents", database: "default" };
    await this.#json(url, "/v1/jobs", { ...verify, payload: { database: "default", table: "typed" } });
    await this.#json(url, "/v1/exports", { query: "SELECT i FROM typed ORDER BY i", database: "default" });
    const timing = { cron: "0 5 1 1 *" };
    await this.#json(url, "/v1/schedules", { name: "yearly", kind: "x.report", timing, enabled: false });
    await this.#json(url, "/v1/workers", { name: "node-1", capabilities: ["x.report"] });
    if (!this.#has.includes("workspaces")) return;
    const spec = { agent: { provider: "codex" } };
    await this.#json(url, "/api/v1/workspaces", { name: "app", description: "an app", spec, labels: { team: "a" } });
    await this.#json(url, "/api/v1/sandboxes", { name: "box", agent_provider: "codex", persistence: "persistent" });
  }

  async #delete(url: string): Promise<void> {
    await this.#ingest(url, "dropped", eventRows(0, 10));
    await this.#call(url, "DELETE", "/v1/catalog/tables/dropped", undefined, { "X-Database": "default" });
    const path = "/v1/catalog/tables/events/delete";
    const { id } = await this.#json(url, path, { where: "CAST(n AS INTEGER) % 10 = 0", dry_run: false });
    for (;;) {
      const deletion = JSON.parse(await this.#call(url, "GET", `/v1/catalog/deletions/${String(id)}`));
      if (deletion.status === "done") return;
      if (deletion.status === "failed") throw new Error(JSON.stringify(deletion));
    }
  }

  async #ingest(url: string, table: string, rows: readonly Json[], database = "default"): Promise<string> {
    const body = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
    const headers = { "Content-Type": "application/x-ndjson", "X-Table": table, "X-Database": database };
    return String(JSON.parse(await this.#call(url, "POST", "/v1/ingest", body, headers)).snapshot_id);
  }

  async #json(url: string, path: string, body: Json): Promise<Json> {
    return JSON.parse(
      await this.#call(url, "POST", path, JSON.stringify(body), { "Content-Type": "application/json" }),
    );
  }

  async #call(url: string, method: string, path: string, body?: string, headers: Record<string, string> = {}) {
    const authorization = this.#session === "" ? {} : { Authorization: `Bearer ${this.#session}` };
    const sent = { method, headers: { ...headers, ...authorization }, ...(body === undefined ? {} : { body }) };
    const answer = await fetch(url + path, sent);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text;
  }
}

/** The records of a list, which some routes wrap in an object. */
export function itemsOf(list: unknown): Json[] {
  const items = Array.isArray(list) ? list : Object.values(list ?? {}).find(Array.isArray);
  if (items === undefined) throw new Error(`there is no list in ${JSON.stringify(list)}`);
  return items;
}

export function pick(item: Json, fields: readonly string[]): Json {
  return Object.fromEntries(fields.flatMap((field) => (field in item ? [[field, item[field]]] : [])));
}

/** Rows from the first on; their numbers are the same in every catalog. */
function eventRows(first: number, count: number): Json[] {
  return Array.from({ length: count }, (_, index) => {
    const n = first + index;
    return {
      at: new Date(1_767_225_600_000 + n * 60_000).toISOString(),
      label: ["alpha", "beta", null, "ünïcödé 🦉"][n % 4],
      body: `row ${n} "quoted"`,
      host: `host-${n % 3}`,
      n,
      props: { deep: { list: [n, "x", null] } },
    };
  });
}

function typedRows(first: number, count: number): Json[] {
  return Array.from({ length: count }, (_, index) => {
    const i = first + index;
    return {
      at: new Date(1_767_225_600_000 + i * 1_000).toISOString(),
      ...(i % 5 === 0 ? {} : { flag: i % 2 === 0, l: Number.MAX_SAFE_INTEGER - i, r: i / 8, s: `text ${i}` }),
      i,
      t: "2026-01-01T00:00:00.123456789Z",
      d: { i, list: [1, null] },
      v: [i, i / 2, -1],
    };
  });
}

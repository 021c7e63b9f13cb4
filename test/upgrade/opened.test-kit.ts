import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { ndjson } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { fixture, LISTS, PASSWORDS, settings, type Driver, type Earlier, type Facts } from "./earlier.ts";
import { itemsOf, LATE_ROWS, pick } from "./writer.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

type Json = Record<string, unknown>;

/** Its process takes seconds to start on a busy machine. */
const JOB_WITHIN_MS = 60_000;

/** The home that an earlier version left, and what that version said of it. */
export async function unpack(earlier: Earlier, driver: Driver) {
  const { home, remove } = await temporaryHome();
  execFileSync("tar", ["-xzf", fixture(earlier.commit, driver), "-C", home]);
  const facts: Facts = JSON.parse(readFileSync(join(home, "facts.json"), "utf8"));
  return { home, remove, facts };
}

/** Starts today's engine on such a home, and compares everything with what the earlier version said. */
export async function checkOpened(earlier: Earlier, facts: Facts, home: string, env: Record<string, string>) {
  const engine = await startEngine({ home, env: { ...settings(earlier.has), ENGINE_SANDBOX_RUNTIME: "off", ...env } });
  try {
    const opened = new Opened(engine, earlier);
    if (earlier.has.includes("users")) await opened.signIn("root", PASSWORDS.root);
    await opened.answersAsBefore(facts);
    await opened.listsAsBefore(facts);
    if (earlier.has.includes("users")) await opened.knowsItsUsers(facts);
    await opened.goesOn();
  } catch (error) {
    throw new Error(`with a catalog of ${facts.commit} on ${facts.driver}; the log:\n${engine.log()}`, {
      cause: error,
    });
  } finally {
    await engine.stop();
  }
}

class Opened {
  readonly #engine: Engine;
  readonly #earlier: Earlier;
  #token = "";

  constructor(engine: Engine, earlier: Earlier) {
    this.#engine = engine;
    this.#earlier = earlier;
  }

  async signIn(username: string, password: string): Promise<void> {
    this.#token = String((await this.#json("POST", "/v1/auth/login", { username, password }))["access_token"]);
  }

  async answersAsBefore({ answers, stagedRows }: Facts): Promise<void> {
    expect(answers.length).toBeGreaterThanOrEqual(5);
    for (const { sql, database, answer } of answers) {
      expect({ sql, answer: await this.#query(sql, database) }).toEqual({ sql, answer });
    }
    // The sums are known from the generator too: what the earlier version answered was right.
    const merged = "SELECT count(*) AS rows, sum(CAST(n AS BIGINT)) AS total FROM merged";
    expect(await this.#query(merged)).toBe('{"rows":320,"total":51040}\n');
    if (!this.#earlier.has.includes("staged writes")) return;
    expect(stagedRows).toBe(LATE_ROWS);
    await eventually(async () => (await this.#query("SELECT count(*) AS n FROM late")) === `{"n":${2 + LATE_ROWS}}\n`);
  }

  async listsAsBefore({ lists }: Facts): Promise<void> {
    for (const { path, part } of LISTS) {
      if (!this.#earlier.has.includes(part)) continue;
      const before = lists[path] ?? [];
      expect(before.length).toBeGreaterThan(0);
      // Fields that came later are not in question.
      const fields = Object.keys(before[0] ?? {});
      const now = itemsOf(await this.#json("GET", path)).map((item) => pick(item, fields));
      expect({ path, items: now }).toEqual({ path, items: expect.arrayContaining(before) });
      expect(now).toHaveLength(before.length);
    }
  }

  async knowsItsUsers({ token }: Facts): Promise<void> {
    const admin = this.#token;
    await this.signIn("ann", PASSWORDS.ann);
    expect(await this.#json("GET", "/v1/auth/me")).toMatchObject({ subject: "ann", role: "write" });
    this.#token = token;
    expect(await this.#json("GET", "/v1/auth/me")).toMatchObject({ role: "write", databases: ["default"] });
    this.#token = admin;
  }

  /** What is there is sound, is added to, and is deleted from. */
  async goesOn(): Promise<void> {
    for (const table of ["typed", "events", "merged"]) {
      const payload = { database: "default", table };
      const job = { kind: "maintenance.verify_extents", database: "default", payload };
      const done = await this.#done(`/v1/jobs/${String((await this.#json("POST", "/v1/jobs", job))["job_id"])}`);
      expect(done).toMatchObject({ status: "done", result: { ok: true } });
    }
    const headers = { "X-Table": "merged", "X-Database": "default" };
    await this.#call("POST", "/v1/ingest", ndjson([{ n: 1_000, at: "2026-01-01T00:00:00Z" }]), headers);
    const where = "CAST(n AS INTEGER) < 100";
    const { id } = await this.#json("POST", "/v1/catalog/tables/merged/delete", { where, dry_run: false });
    expect(await this.#done(`/v1/catalog/deletions/${String(id)}`)).toMatchObject({ status: "done" });
    expect(await this.#query("SELECT count(*) AS rows FROM merged")).toBe('{"rows":221}\n');
    await this.#call("DELETE", "/v1/catalog/tables/events", undefined, { "X-Database": "default" });
  }

  async #done(path: string): Promise<Json> {
    let seen: Json = {};
    await eventually(async () => {
      seen = await this.#json("GET", path);
      return seen["status"] === "done" || seen["status"] === "failed";
    }, JOB_WITHIN_MS);
    return seen;
  }

  #query(sql: string, database = "default"): Promise<string> {
    return this.#call("POST", "/v1/query", sql, { "Content-Type": "application/sql", "X-Database": database });
  }

  async #json(method: string, path: string, body?: Json): Promise<Json> {
    const headers = { "Content-Type": "application/json", "X-Database": "default" };
    return JSON.parse(await this.#call(method, path, body && JSON.stringify(body), body && headers));
  }

  async #call(method: string, path: string, body?: string, headers: Record<string, string> = {}): Promise<string> {
    const authorization = this.#token === "" ? {} : { Authorization: `Bearer ${this.#token}` };
    const sent = { method, headers: { ...headers, ...authorization }, ...(body === undefined ? {} : { body }) };
    const answer = await fetch(this.#engine.url + path, sent);
    const text = await answer.text();
    expect({ request: `${method} ${path}`, ok: answer.ok, text }).toMatchObject({ ok: true });
    return text;
  }
}

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ADMIN, by } from "../../../auth/access.test-kit.ts";
import { AuditLog } from "../../../auth/audit.ts";
import type { Caller } from "../../../auth/caller.ts";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { seededRandom } from "../../../core/random.ts";
import { NOW, type RecordStore, type Statement } from "../../../db/records.ts";
import { AGENT_LIMITS } from "../limits.ts";
import { Sessions, type Begun } from "./sessions.ts";

const ANN: Caller = { subject: "ann", kind: "session", role: "read", databases: undefined };
const BOB: Caller = { ...ANN, subject: "bob" };
const limitedTo = (...databases: string[]): Caller => ({ ...ANN, databases });

type Asked = { sessionId?: string; caller?: Caller; database?: string; source?: string; question?: string };

/** What sessions must do on every driver of the catalog. */
export function sessionsContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`sessions of the agent on ${driver}`, () => {
    let opened: OpenedCatalog;
    let records: RecordStore;
    let audit: AuditLog;
    let sessions: Sessions;
    let runs: number;

    beforeEach(async () => {
      opened = await open();
      ({ records } = opened.catalog);
      const newId = uuidV7Source(opened.clock, seededRandom(1));
      audit = new AuditLog(records, newId);
      sessions = new Sessions({ records, newId, audit });
      runs = 0;
    });
    afterEach(() => opened.close());

    async function ask(asked: Asked = {}): Promise<Begun & { runId: string }> {
      const { sessionId, caller = ANN, database = "default", source, question = "how many orders?" } = asked;
      const runId = `run-${++runs}`;
      opened.clock.advance(1_000);
      const along = (id: string) => [insertRun(runId, id)];
      const begun = await sessions.begin({ sessionId, caller, database, source, question, runId, along });
      return { ...begun, runId };
    }
    async function answer({ sessionId, runId }: { sessionId: string; runId: string }, text?: string): Promise<void> {
      opened.clock.advance(1_000);
      await records.transact(sessions.endStatements({ sessionId, runId, answer: text }));
    }
    const said = async (sessionId: string) => {
      const { turns } = await sessions.turns(sessionId, ANN);
      return turns.map(({ turnIndex, role, content, runId }) => [turnIndex, role, content, runId]);
    };
    const count = async (table: string) =>
      Number((await records.rows(`SELECT count(*) AS n FROM ${table}`))[0]?.["n"] ?? -1);
    const code = async (work: Promise<unknown>) =>
      await work.then(
        () => "done",
        (error: unknown) => (error as { code?: string }).code ?? error,
      );

    it("keeps what is asked and answered, in order", async () => {
      const first = await ask({ question: "\n how many\torders?\nplease", source: "cli" });
      expect(first).toMatchObject({ isNew: true, summary: undefined, turns: [] });
      await answer(first, "Twelve.");
      const second = await ask({ sessionId: first.sessionId, question: "and today?" });
      expect(second).toMatchObject({ isNew: false, sessionId: first.sessionId, summary: undefined });
      expect(second.turns.map(({ turnIndex, role, content, runId }) => [turnIndex, role, content, runId])).toEqual([
        [0, "user", "\n how many\torders?\nplease", "run-1"],
        [1, "assistant", "Twelve.", "run-1"],
      ]);
      await answer(second, "Three\0\ud800.");
      expect(await said(first.sessionId)).toEqual([
        [0, "user", "\n how many\torders?\nplease", "run-1"],
        [1, "assistant", "Twelve.", "run-1"],
        [2, "user", "and today?", "run-2"],
        [3, "assistant", "Three\ufffd.", "run-2"],
      ]);
      const session = await sessions.get(first.sessionId, ANN);
      expect(session).toMatchObject({ title: "how many orders?", source: "cli", database: "default", turnCount: 4 });
      expect(session.lastActiveMs - session.createdAtMs).toBe(3_000);
    });

    it("has a question without an answer where a run gave none", async () => {
      const first = await ask();
      await answer(first);
      const second = await ask({ sessionId: first.sessionId, question: "again" });
      await answer(second, "");
      expect((await said(first.sessionId)).map(([index, role]) => [index, role])).toEqual([
        [0, "user"],
        [1, "user"],
      ]);
    });

    it("is one run's at a time, however many ask at once", async () => {
      const first = await ask();
      const { sessionId } = first;
      expect(await code(ask({ sessionId }))).toBe("conflict");
      expect(await said(sessionId)).toHaveLength(1);
      // The end of another run changes nothing.
      await answer({ sessionId, runId: "run-99" }, "not mine");
      expect(await code(ask({ sessionId }))).toBe("conflict");
      await answer(first, "Twelve.");
      await answer(first, "twice");
      const outcomes = await Promise.all(Array.from({ length: 5 }, () => code(ask({ sessionId }))));
      expect(outcomes.filter((outcome) => outcome === "conflict")).toHaveLength(4);
      expect(outcomes).toContain("done");
      expect(await said(sessionId)).toHaveLength(3);
      expect(await count("agent_runs")).toBe(2);
    });

    it("belongs to who began it, in the database that it is about", async () => {
      const { sessionId, ...run } = await ask();
      await answer({ sessionId, ...run }, "Twelve.");
      const strangers = [BOB, limitedTo("other"), { ...ADMIN, databases: ["other"] }];
      for (const caller of strangers) {
        expect(await code(sessions.get(sessionId, caller))).toBe("session_not_found");
        expect(await code(sessions.turns(sessionId, caller))).toBe("session_not_found");
        expect(await code(sessions.remove(sessionId, by(caller)))).toBe("session_not_found");
        expect(await code(ask({ sessionId, caller }))).toBe("session_not_found");
        expect(await sessions.list(caller)).toEqual([]);
      }
      for (const caller of [ANN, limitedTo("default"), ADMIN, { ...ADMIN, databases: ["default"] }]) {
        expect(await sessions.get(sessionId, caller)).toMatchObject({ id: sessionId });
        expect(await sessions.list(caller)).toHaveLength(1);
      }
      expect(await sessions.list(limitedTo())).toEqual([]);
      for (const id of ["", "x", "a\0b"]) expect(await code(sessions.get(id, ADMIN))).toBe("session_not_found");
      expect(await code(ask({ sessionId, database: "other" }))).toBe("invalid_parameter");
      expect(await said(sessionId)).toHaveLength(2);
      const admins = await ask({ sessionId, caller: ADMIN, database: "DEFAULT" });
      expect(admins.turns).toHaveLength(2);
    });

    it("lists the last active first, at most 200", async () => {
      const insert = (n: number) => ({
        sql:
          "INSERT INTO agent_sessions (id, owner, database, title, summarized_turns, turn_count, created_at_ms, " +
          "last_active_ms) VALUES (?, 'ann', 'default', '', 0, 0, 0, ?)",
        values: [`s-${String(n).padStart(3, "0")}`, n],
      });
      await records.transact(Array.from({ length: AGENT_LIMITS.sessions + 1 }, (_, n) => insert(n)));
      const first = await ask();
      const listed = await sessions.list(ANN);
      expect(listed).toHaveLength(AGENT_LIMITS.sessions);
      expect(listed.slice(0, 2).map(({ id }) => id)).toEqual([first.sessionId, "s-200"]);
    });

    it("leaves its runs behind when it is deleted, also one under way", async () => {
      const first = await ask();
      const { sessionId } = first;
      await answer(first, "Twelve.");
      const second = await ask({ sessionId });
      const other = await ask();
      await sessions.remove(sessionId, by(ANN));
      await answer(second, "Too late.");
      expect(await code(sessions.get(sessionId, ANN))).toBe("session_not_found");
      expect(await code(sessions.remove(sessionId, by(ANN)))).toBe("session_not_found");
      expect(await count("agent_turns")).toBe(1);
      const left = await records.rows("SELECT session_id FROM agent_runs ORDER BY id");
      expect(left.map((row) => row["session_id"])).toEqual([null, null, other.sessionId]);
      const entries = await audit.list({ limit: 10 });
      expect(entries.map(({ action, target, outcome, actor }) => [action, target, outcome, actor])).toEqual([
        ["agent.session_delete", sessionId, "ok", "ann"],
      ]);
    });

    it("shows a run what the summary does not tell of", async () => {
      let run = await ask({ question: "0" });
      const { sessionId } = run;
      await answer(run, "1");
      run = await ask({ sessionId, question: "2" });
      await answer(run, "3");
      expect(await sessions.saveSummary({ sessionId, summary: "they count", upToTurn: 2 })).toBe(true);
      run = await ask({ sessionId, question: "4" });
      expect(run.summary).toBe("they count");
      expect(run.turns.map(({ content }) => content)).toEqual(["2", "3"]);
      // One that tells of less, or of what was not said, is not kept.
      expect(await sessions.saveSummary({ sessionId, summary: "older", upToTurn: 2 })).toBe(false);
      expect(await sessions.saveSummary({ sessionId, summary: "of the future", upToTurn: 6 })).toBe(false);
      expect(await sessions.get(sessionId, ANN)).toMatchObject({ rollingSummary: "they count", summarizedTurns: 2 });
      expect(await sessions.saveTitle({ sessionId, title: " Counting\nup " })).toBe(true);
      expect(await sessions.get(sessionId, ANN)).toMatchObject({ title: "Counting" });
      expect(await sessions.saveTitle({ sessionId: "x", title: "t" })).toBe(false);
    });

    it("shows a run the newest turns, within the limit of bytes", async () => {
      const third = "é".repeat(Math.ceil(AGENT_LIMITS.historyBytes / 6));
      let run = await ask({ question: "0" });
      const { sessionId } = run;
      await answer(run, third);
      run = await ask({ sessionId, question: "2" });
      await answer(run, third);
      run = await ask({ sessionId, question: "4" });
      await answer(run, third);
      run = await ask({ sessionId, question: "6" });
      expect(run.turns.map(({ turnIndex }) => turnIndex)).toEqual([2, 3, 4, 5]);
      await answer(run, `€${"x".repeat(AGENT_LIMITS.historyBytes)}`);
      run = await ask({ sessionId, question: "8" });
      expect(run.turns.map(({ turnIndex }) => turnIndex)).toEqual([7]);
      expect(run.turns[0]?.content).toMatch(/^€x+…$/);
      expect(Buffer.byteLength(run.turns[0]?.content ?? "")).toBe(AGENT_LIMITS.historyBytes);
    });

    it("gives its turns in parts", async () => {
      const run = await ask();
      const { sessionId } = run;
      const insert = (n: number, content: string): Statement => ({
        sql: "INSERT INTO agent_turns (session_id, turn_index, role, content, created_at_ms) VALUES (?, ?, 'user', ?, 0)",
        values: [sessionId, n, content],
      });
      const large = "x".repeat(AGENT_LIMITS.turnBytes);
      await records.transact([insert(1, large), insert(2, large)]);
      await records.transact(Array.from({ length: AGENT_LIMITS.turns }, (_, n) => insert(n + 3, "y")));
      const parts: [number, number | undefined, boolean][] = [];
      for (let after: number | undefined, more = true; more;) {
        const { turns, truncated } = await sessions.turns(sessionId, ANN, { after });
        after = turns.at(-1)?.turnIndex;
        more = truncated;
        parts.push([turns.length, after, truncated]);
      }
      expect(parts).toEqual([
        [2, 1, true],
        [1, 2, true],
        [1_000, 1_002, false],
      ]);
      expect(await sessions.turns(sessionId, ANN, { after: 5_000 })).toEqual({ turns: [], truncated: false });
    });
  });
}

function insertRun(id: string, sessionId: string): Statement {
  const sql =
    "INSERT INTO agent_runs (id, session_id, owner, database, question, engine_kind, model, status, tool_calls, usage, " +
    "queries, holder, lease_until_ms, started_at_ms) " +
    "VALUES (?, ?, 'ann', 'default', '', 'openai', 'm', 'running', 0, '{}', '[]', 'h', ?, ?)";
  return { sql, values: [id, sessionId, NOW, NOW] };
}

import { expect } from "vitest";
import type { SandboxEventType } from "../../contract/event.ts";
import { ANN, originOf, type ControlPlane, type LeasedBox } from "../scheduler/scheduler.test-kit.ts";
import type { ContentBlock } from "../../contract/content.ts";
import type { Session } from "../turns/session.ts";
import type { Turn, TurnReport } from "../../contract/turn.ts";
import type { BegunTurn, EndedTurn } from "./turn-end.ts";

export const BY_ANN = { asker: ANN, origin: originOf(ANN) };

export function text(said: string): ContentBlock {
  return { type: "text", text: said };
}

/** An event of a turn, as a node records it. */
export function told(
  { sessionId }: Pick<Turn, "sessionId">,
  type: SandboxEventType,
  data: Readonly<Record<string, unknown>>,
) {
  return { type, atMs: 7, data, sessionId };
}

export function delta(turn: Pick<Turn, "sessionId">, said: string) {
  return told(turn, "text_delta", { text: said });
}

export function reportOf(
  { sessionId, turnId }: Pick<Turn, "sessionId" | "turnId">,
  more: Partial<TurnReport> = {},
): TurnReport {
  return { sessionId, turnId, outcome: "completed", content: [], ...more };
}

/** The turns of a sandbox as its node is told of them. */
export async function turnsIn(box: LeasedBox): Promise<readonly Turn[]> {
  return (await box.desiredState()).turns ?? [];
}

/** The one turn that is under way. */
export async function turnIn(box: LeasedBox): Promise<Turn> {
  const [turn, ...more] = await turnsIn(box);
  if (turn === undefined || more.length > 0) throw new Error(`there are ${more.length} turns beside one`);
  return turn;
}

/** Sessions of one plane, as ann has them. */
export class Talk {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  open(sandboxId: string): Promise<Session> {
    return this.#plane.sandboxes.sessions.create(sandboxId, {}, ANN);
  }

  get(id: string): Promise<Session> {
    return this.#plane.sandboxes.sessions.get(id, ANN);
  }

  async say(id: string, said: string | readonly ContentBlock[]): Promise<BegunTurn> {
    const content = typeof said === "string" ? [text(said)] : said;
    return await this.#plane.sandboxes.sessions.begin(await this.get(id), content, BY_ANN);
  }

  async interrupt(id: string): Promise<Session> {
    return await this.#plane.sandboxes.sessions.interrupt(await this.get(id), BY_ANN);
  }

  async messages(id: string) {
    const session = await this.get(id);
    const found = await this.#plane.sandboxes.sessions.messages(session, { limit: 1_000 });
    return found.map(({ role, content, error }) => ({ role, content, error }));
  }

  /** How a turn ended, which it has. */
  async ended(turn: BegunTurn): Promise<EndedTurn> {
    const ended = await this.#plane.sandboxes.sessions.ended(turn, { signal: new AbortController().signal });
    expect(ended).toBeDefined();
    return ended ?? { type: "gone" };
  }

  /** What the log of a sandbox says of sessions. */
  async events(sandboxId: string) {
    const sql = "SELECT event_type, session_id, data FROM sandbox_events WHERE sandbox_id = ? ORDER BY seq";
    return (await this.#plane.records.rows(sql, [sandboxId]))
      .map((row) => ({
        type: String(row["event_type"]),
        sessionId: row["session_id"],
        data: JSON.parse(String(row["data"])) as Record<string, unknown>,
      }))
      .filter(({ type }) => type.startsWith("session_"));
  }
}

import { hashToken, newToken } from "../../auth/tokens.ts";
import type { Random } from "../../core/random.ts";

/** The tools that a run of the agent lends to the program that answers for it. */
export type LentTools = {
  listed: readonly { name: string; description: string; inputSchema: Record<string, unknown> }[];
  /**
   * Has the run make a call, within its limits. Rejects when the run ends first.
   *
   * @param signal aborted when the program takes the call back
   */
  call(name: string, args: unknown, signal: AbortSignal): Promise<{ text: string; isError: boolean }>;
};

/**
 * The runs of this process whose tools are lent, by the token that each run's program shows. They are in memory alone: a
 * token is good on the node that runs, for as long as the run lasts, and nothing of it is left afterwards. Calls come to the
 * route of MCP, which is there anyway and where operators expect them (`ENGINE_AGENT_MCP_URL`), and not to a listener of
 * their own: the route sees the form of the token first, and gives its bearer the run's tools and no others.
 */
export class LentToolsByToken {
  readonly #random: Random;
  readonly #lent = new Map<string, LentTools>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** @returns the token, and how to end it; ending it twice does no harm. */
  lend(tools: LentTools): { token: string; end: () => void } {
    const token = newToken("run", this.#random);
    const key = hashToken(token);
    this.#lent.set(key, tools);
    return { token, end: () => void this.#lent.delete(key) };
  }

  /** Undefined for the token of a run that is over, or of another process. */
  find(token: string): LentTools | undefined {
    return this.#lent.get(hashToken(token));
  }
}

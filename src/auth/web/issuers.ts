import type { Origin } from "../audit.ts";
import type { Caller } from "../caller.ts";
import type { Issued, IssuedTokens } from "../jwt/issued.ts";
import type { SignInClient, SignInWay } from "./sign-in-client.ts";

/** The issuers of the configuration, as browsers' sessions need them. */
export class WebIssuers {
  /** In the order of the configuration. */
  readonly ways: readonly SignInWay[];
  readonly #tokens: IssuedTokens | undefined;

  constructor(ways: readonly SignInWay[] = [], tokens?: IssuedTokens) {
    this.ways = ways;
    this.#tokens = tokens;
  }

  /** Who asks that issuer; undefined for one that the configuration does not have, or not any more. */
  clientOf(issuer: string): SignInClient | undefined {
    return this.ways.find(({ client }) => client.issuer === issuer)?.client;
  }

  /** What a token says that somebody has brought along. */
  async issued(token: string): Promise<Issued | undefined> {
    return await this.#tokens?.issued(token);
  }

  /** See `IssuedTokens`. */
  async callerOf(issued: Pick<Issued, "issuer" | "claims">, from: Omit<Origin, "caller">): Promise<Caller | undefined> {
    return await this.#tokens?.callerOf(issued, from);
  }
}

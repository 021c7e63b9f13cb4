import { join } from "node:path";
import { startServices, type RunningServices } from "../edge/run.test-kit.ts";
import { temporaryHome } from "../support/engine.ts";

export type Json = Record<string, unknown>;
type Role = "read" | "write" | "admin";

/** One server with all roles in a home of its own, and its callers, each with a token. */
export class CalledServices<Who extends string> {
  readonly home: string;
  readonly url: string;
  readonly tokens: Map<Who, string>;
  readonly #closers: (() => Promise<void>)[];

  private constructor(home: string, services: RunningServices, tokens: Map<Who, string>, remove: () => Promise<void>) {
    this.home = home;
    this.url = services.url;
    this.tokens = tokens;
    this.#closers = [remove, () => services.stop()];
  }

  static async start<Who extends string>(
    callers: readonly (readonly [Who, Role])[],
    env: Record<string, string> = {},
    prepare: (home: string) => Promise<void> = async () => {},
  ): Promise<CalledServices<Who>> {
    const { home, remove } = await temporaryHome();
    await prepare(home);
    const tokens = new Map(callers.map(([who]) => [who, `${who}-token-of-the-test`] as const));
    const services = await startServices({
      ENGINE_HOME: home,
      ENGINE_CATALOG_URL: `sqlite://${join(home, "catalog.db")}`,
      ENGINE_AUTH_TOKENS: callers.map(([who, role]) => `${tokens.get(who)}:${role}`).join(","),
      ...env,
    });
    return new CalledServices(home, services, tokens, remove);
  }

  send(who: Who, method: string, path: string, body?: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${this.tokens.get(who)}`, ...headers },
      ...(body === undefined ? {} : { body }),
    });
  }

  /** What is answered, with its status. */
  async json(
    who: Who,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Json & { httpStatus: number }> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const all = text === undefined ? headers : { "Content-Type": "application/json", ...headers };
    const answer = await this.send(who, method, path, text, all);
    return { ...((await answer.json()) as Json), httpStatus: answer.status };
  }

  /** One more caller, who may use these databases alone. */
  async limit(who: Who, role: Role, databases: readonly string[], admin: Who): Promise<void> {
    const made = await this.json(admin, "POST", "/v1/auth/tokens", { name: who, role, databases });
    this.tokens.set(who, String(made["token"]));
  }

  /** Closed before the server is. */
  closeFirst(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).toReversed()) await close();
  }
}

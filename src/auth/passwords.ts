import { hash, verify } from "@node-rs/argon2";
import { Semaphore } from "../core/concurrency.ts";
import { EngineError } from "../core/errors.ts";

/**
 * Passwords, by argon2id with the least parameters that OWASP recommends (19 MiB, two passes, one lane: the library's
 * own defaults; https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html). Each takes 19 MiB
 * and tens of milliseconds of a thread of libuv's pool, so only a few are computed at a time, and past a bound callers
 * are told to come back.
 */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;
const MAX_AT_ONCE = 2;
const MAX_WAITING = 100;

const MIN_CHARS = 8;
/** Far beyond any password; what is longer only costs. */
const MAX_BYTES = 1_024;

/** Throws `invalid_parameter` for a password that may not be set. */
export function checkNewPassword(password: string): void {
  if (Array.from(password).length < MIN_CHARS) {
    throw new EngineError("invalid_parameter", `the password is too short: at least ${MIN_CHARS} characters`);
  }
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw new EngineError("invalid_parameter", `the password is too long: at most ${MAX_BYTES} bytes`);
  }
}

export class Passwords {
  readonly #places = new Semaphore(MAX_AT_ONCE);
  /** Of no password: what is compared when there is no such user, so that the time does not tell. */
  #nobody: Promise<string> | undefined;

  async hash(password: string): Promise<string> {
    return await this.#bounded(() => hash(password, PARAMETERS));
  }

  /** Whether it is the password; without a hash it never is, and takes as long. */
  async verify(known: string | undefined, password: string): Promise<boolean> {
    if (Buffer.byteLength(password) > MAX_BYTES) return false;
    if (known !== undefined) return await this.#bounded(() => verify(known, password));
    this.#nobody ??= this.hash("nobody has this password");
    const nobody = await this.#nobody;
    await this.#bounded(() => verify(nobody, password));
    return false;
  }

  async #bounded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#places.waiting >= MAX_WAITING) {
      const headers = { "Retry-After": "2" };
      throw new EngineError("too_many_requests", "too many sign-ins at once; wait", { headers });
    }
    return await this.#places.run(work);
  }
}

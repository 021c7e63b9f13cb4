import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import { WaitingLine } from "../../core/waiting-line.ts";

/**
 * Who may run now.
 *
 * - At most `maxConcurrent` queries are in flight, and `maxPerTenant` of one tenant (a caller in a database); those that
 *   wait count. The excess is refused at once.
 * - A query reserves its memory budget before it runs. The reservations never pass `totalMemoryBytes`; a query that
 *   finds no room waits in line.
 * - A query is *large* when it has much to read, or once it has run for a while. Large queries hold at most `maxLarge`
 *   permits, one fewer than there are processes, and leave the memory of one query free, so that a small query never
 *   waits for a large one to end. A query that grows large while no permit is free gives back its process and its
 *   memory, waits in the line of the large ones, and starts over; queries only read, so nothing is lost but time.
 *
 * Both lines are bounded in length and in time; past them the answer is 429 with `Retry-After`.
 */
export type AdmissionOptions = {
  clock: Clock;
  /** 0 for no limit. */
  maxConcurrent: number;
  /** 0 for no limit. */
  maxPerTenant: number;
  totalMemoryBytes: number;
  /** Memory that large queries leave to the others. */
  sparedMemoryBytes: number;
  maxLarge: number;
  retryAfterSecs: number;
  /** Called with how many large queries run, when that changes. */
  onLarge?: (count: number) => void;
  /** Called when a query is refused. */
  onRefused?: (reason: Refusal) => void;
  maxQueued?: number;
  maxWaitMs?: number;
  maxLargeWaitMs?: number;
};

export type Refusal = "concurrent" | "tenant" | "memory" | "large";

export type Permit = {
  /**
   * Reserves the memory, and the permit of a large query once it has outgrown; waits for them in line. Rejects with
   * `too_many_requests` or the signal's reason.
   */
  reserve(signal: AbortSignal): Promise<void>;
  /** Makes the query a large one if a permit is free; true when it is one now. */
  grow(): boolean;
  /** Gives the reservation back; from here on `reserve` waits for a large one. */
  outgrow(): void;
  /** Gives everything back. Harmless when repeated. */
  leave(): void;
};

const DEFAULT_MAX_QUEUED = 256;
const DEFAULT_MAX_WAIT_MS = 10_000;
/** Large queries take many seconds themselves: waiting for one of them is worth it for longer. */
const DEFAULT_MAX_LARGE_WAIT_MS = 30_000;

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #tenants = new Map<string, number>();
  readonly #small: WaitingLine<Ticket, void>;
  readonly #large: WaitingLine<Ticket, void>;
  #inFlight = 0;
  #reservedBytes = 0;
  #largeBytes = 0;
  #largeCount = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#small = new WaitingLine(options.clock);
    this.#large = new WaitingLine(options.clock);
  }

  /** What is held and waited for; all zero when nothing runs. */
  get state(): { inFlight: number; tenants: number; reservedBytes: number; large: number; waiting: number } {
    return {
      inFlight: this.#inFlight,
      tenants: this.#tenants.size,
      reservedBytes: this.#reservedBytes,
      large: this.#largeCount,
      waiting: this.#small.size + this.#large.size,
    };
  }

  /** Counts a query in. Throws `too_many_requests`. The caller must `leave`. */
  enter(request: { tenant: string; memoryBytes: number }): Permit {
    const { maxConcurrent, maxPerTenant } = this.#options;
    const tenant = foldName(request.tenant);
    const ofTenant = this.#tenants.get(tenant) ?? 0;
    if (maxConcurrent > 0 && this.#inFlight >= maxConcurrent) {
      throw this.#refusal("concurrent", `${maxConcurrent} queries are running already`);
    }
    if (maxPerTenant > 0 && ofTenant >= maxPerTenant) {
      throw this.#refusal("tenant", `${maxPerTenant} queries of yours in this database are running already`);
    }
    this.#inFlight++;
    this.#tenants.set(tenant, ofTenant + 1);
    // What can never fit would wait for ever.
    const memoryBytes = Math.min(request.memoryBytes, this.#options.totalMemoryBytes);
    const ticket: Ticket = { tenant, memoryBytes, reserved: false, large: false, outgrown: false, left: false };
    return {
      reserve: (signal) => this.#reserve(ticket, signal),
      grow: () => this.#grow(ticket),
      outgrow: () => {
        ticket.outgrown = true;
        this.#giveBack(ticket);
      },
      leave: () => this.#leave(ticket),
    };
  }

  async #reserve(ticket: Ticket, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const line = ticket.outgrown ? this.#large : this.#small;
    if (line.size === 0 && this.#fits(ticket)) {
      this.#take(ticket);
      return;
    }
    if (this.state.waiting >= (this.#options.maxQueued ?? DEFAULT_MAX_QUEUED)) throw this.#full(ticket);
    await this.#wait(ticket, line, signal);
  }

  async #wait(ticket: Ticket, line: WaitingLine<Ticket, void>, signal: AbortSignal): Promise<void> {
    const { maxWaitMs = DEFAULT_MAX_WAIT_MS, maxLargeWaitMs = DEFAULT_MAX_LARGE_WAIT_MS } = this.#options;
    const timeoutMs = ticket.outgrown ? maxLargeWaitMs : maxWaitMs;
    try {
      await line.wait(ticket, { signal, timeoutMs, onTimeout: () => this.#full(ticket) });
    } catch (error) {
      // Others may fit where this one did not.
      this.#serve();
      throw error;
    }
  }

  /** Serves the lines in order. The large ones first: small ones come all the time, and would never let them in. */
  #serve(): void {
    for (const line of [this.#large, this.#small]) {
      for (const ticket of line.keys()) {
        if (!this.#fits(ticket)) break;
        this.#take(ticket);
        line.serve(ticket, undefined);
      }
    }
  }

  #fits(ticket: Ticket): boolean {
    const hasMemory = this.#reservedBytes + ticket.memoryBytes <= this.#options.totalMemoryBytes;
    return hasMemory && (!ticket.outgrown || this.#mayBeLarge(ticket));
  }

  #mayBeLarge({ memoryBytes }: Ticket): boolean {
    const { maxLarge, totalMemoryBytes, sparedMemoryBytes } = this.#options;
    // One is let in always: with memory for a single query there is none to spare.
    if (this.#largeCount === 0) return true;
    return this.#largeCount < maxLarge && this.#largeBytes + memoryBytes <= totalMemoryBytes - sparedMemoryBytes;
  }

  #take(ticket: Ticket): void {
    ticket.reserved = true;
    this.#reservedBytes += ticket.memoryBytes;
    if (ticket.outgrown) this.#makeLarge(ticket);
  }

  #grow(ticket: Ticket): boolean {
    if (ticket.large) return true;
    if (!ticket.reserved || this.#large.size > 0 || !this.#mayBeLarge(ticket)) return false;
    this.#makeLarge(ticket);
    return true;
  }

  #makeLarge(ticket: Ticket): void {
    ticket.large = true;
    this.#largeBytes += ticket.memoryBytes;
    this.#largeCount++;
    this.#options.onLarge?.(this.#largeCount);
  }

  #giveBack(ticket: Ticket): void {
    if (ticket.large) {
      ticket.large = false;
      this.#largeBytes -= ticket.memoryBytes;
      this.#largeCount--;
      this.#options.onLarge?.(this.#largeCount);
    }
    if (ticket.reserved) {
      ticket.reserved = false;
      this.#reservedBytes -= ticket.memoryBytes;
    }
    this.#serve();
  }

  #leave(ticket: Ticket): void {
    if (ticket.left) return;
    ticket.left = true;
    this.#inFlight--;
    const ofTenant = (this.#tenants.get(ticket.tenant) ?? 1) - 1;
    if (ofTenant > 0) this.#tenants.set(ticket.tenant, ofTenant);
    else this.#tenants.delete(ticket.tenant);
    this.#giveBack(ticket);
  }

  #full(ticket: Ticket): EngineError {
    return ticket.outgrown
      ? this.#refusal("large", "as many large queries run as this server takes at a time")
      : this.#refusal("memory", "the memory for queries is taken");
  }

  #refusal(reason: Refusal, why: string): EngineError {
    this.#options.onRefused?.(reason);
    return new EngineError("too_many_requests", `${why}; try again later`, {
      headers: { "Retry-After": String(this.#options.retryAfterSecs) },
    });
  }
}

type Ticket = {
  readonly tenant: string;
  readonly memoryBytes: number;
  reserved: boolean;
  large: boolean;
  outgrown: boolean;
  left: boolean;
};

import { sleep, type Clock } from "../core/clock.ts";
import { EngineError, StartupError } from "../core/errors.ts";
import type { Service } from "../core/lifecycle.ts";
import type { Log } from "../core/log.ts";
import type { RecordStore } from "../db/records.ts";
import type { HeldRemoval, SchemaUpkeep, ServerRow } from "../db/schema-upkeep.ts";
import { ServerRows, type Announcement, type ServerAddress } from "./server-rows.ts";
import { Sightings } from "./sightings.ts";

/** Between two heart-beats. */
const BEAT_MS = 5_000;
/** A server without one for so long is not asked for anything: it has missed three. */
const ASKED_FOR_MS = 20_000;
/** A server without one for so long is taken for dead, and removals no longer wait for it. */
const DEAD_AFTER_MS = 60_000;
/** Until then its row is shown; whoever looks for it finds when it was last seen. */
const FORGOTTEN_AFTER_MS = 600_000;

export type HeartBeatDeps = {
  records: Pick<RecordStore, "rows" | "write">;
  upkeep: SchemaUpkeep;
  clock: Clock;
  log: Log;
  self: Omit<Announcement, "knownSchema" | "url">;
  /** Called once, when a removal has taken away what this program uses: it can only end. */
  onOutdated: () => void;
};

/**
 * Tells the others on the catalog that this server lives, and which schema its program knows; with every heart-beat it
 * looks whether its program may still run, and runs removals that wait for nobody any more.
 *
 * A server that cannot send heart-beats is taken for dead, though it may live. It works on the same database, so mostly
 * it can do nothing else either; when it reaches the database again, it learns that it is outdated, and ends.
 */
export class HeartBeat implements Service {
  readonly name = "heart-beat";
  readonly #deps: HeartBeatDeps;
  readonly #rows: ServerRows;
  readonly #sightings: Sightings;
  readonly #stop = new AbortController();
  #beating: Promise<void> | undefined;
  #isFailing = false;
  #heldBy = "";
  #url: string | undefined;

  constructor(deps: HeartBeatDeps) {
    this.#deps = deps;
    this.#rows = new ServerRows(deps.records);
    this.#sightings = new Sightings(deps.clock);
  }

  /** Before the server does anything else on the catalog. Rejects with `StartupError` when its program is outdated. */
  async announce(): Promise<void> {
    const { log, upkeep, self } = this.#deps;
    const { known, found } = upkeep;
    // The row comes first: a removal either sees it and waits, or has happened and is seen below.
    await this.#writeFirst();
    const oldest = await this.#rows.oldestSchema();
    if (oldest > known) {
      await this.#rows.remove(self.id);
      throw new StartupError(
        `the catalog is for programs that know schema ${oldest}, and this one knows ${known}: use the newer program`,
      );
    }
    if (found > known) {
      const note = "the catalog was upgraded by a newer version, which this one can work with; upgrade this server too";
      log.warn({ catalog_schema: found, known_schema: known, oldest_schema: oldest }, note);
    }
  }

  get self(): { id: string; name: string } {
    const { id, name } = this.#deps.self;
    return { id, name };
  }

  /** From now on others are told that this server is there. Does not wait. */
  listensAt(url: string): void {
    this.#url = url;
    void this.#tryOnce();
  }

  /** The servers but this one that answer others, and show signs of life. */
  async others(): Promise<ServerAddress[]> {
    const { id: own } = this.#deps.self;
    const isAsked = (server: ServerAddress): boolean => this.#sightings.silentMs(server) < ASKED_FOR_MS;
    return (await this.#rows.addresses()).filter(
      (server) => server.id !== own && server.url !== this.#url && isAsked(server),
    );
  }

  /** A full disk keeps nobody from reading; nothing can be removed on it either, and every heart-beat looks again. */
  async #writeFirst(): Promise<void> {
    try {
      await this.#rows.beat(this.#announcement());
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "insufficient_storage") throw error;
      this.#deps.log.warn({ err: error }, "other servers do not know of this one: the disk of the catalog is full");
    }
  }

  async run(): Promise<void> {
    this.#beating ??= this.#beatUntilStopped();
  }

  /** It lives as long as it drains. */
  async drain(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#beating;
  }

  /** Takes the row away, unless the catalog is away: nobody has to wait for this server. */
  async leave(): Promise<void> {
    if (this.#isFailing) return;
    try {
      await this.#rows.remove(this.#deps.self.id);
    } catch (error) {
      this.#deps.log.warn({ err: error }, "other servers wait a minute for this one: it could not take leave");
    }
  }

  async #beatUntilStopped(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#tryOnce();
      await sleep(this.#deps.clock, BEAT_MS, signal).catch(() => undefined);
    }
  }

  async #tryOnce(): Promise<void> {
    const { log } = this.#deps;
    try {
      await this.beat();
      if (this.#isFailing) log.info("heart-beats reach the catalog again");
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, "a heart-beat failed; after a minute this server counts as dead");
      this.#isFailing = true;
    }
  }

  /** One heart-beat. */
  async beat(): Promise<void> {
    const { log, upkeep, onOutdated } = this.#deps;
    await this.#rows.beat(this.#announcement());
    const oldest = await this.#rows.oldestSchema();
    if (oldest > upkeep.known) {
      const note = "a newer version removed from the catalog what this program uses; the server ends: upgrade it";
      log.fatal({ oldest_schema: oldest, known_schema: upkeep.known }, note);
      this.#stop.abort();
      onOutdated();
      return;
    }
    const rows = await this.#rows.all();
    this.#sightings.note(rows);
    await this.#forgetDead(rows);
    if (upkeep.hasRemovals) await this.#remove();
  }

  async #forgetDead(rows: readonly ServerRow[]): Promise<void> {
    for (const row of rows) {
      if (this.#sightings.silentMs(row) >= FORGOTTEN_AFTER_MS) await this.#rows.removeSilent(row);
    }
  }

  async #remove(): Promise<void> {
    const { log, upkeep } = this.#deps;
    const isAlive = (row: ServerRow): boolean => this.#sightings.silentMs(row) < DEAD_AFTER_MS;
    const { removed, held } = await upkeep.removeUnused(isAlive);
    for (const migration of removed) log.info({ migration }, "removed from the catalog what no server uses any more");
    this.#tellHeld(held);
  }

  /** Once for each change. */
  #tellHeld(held: HeldRemoval | undefined): void {
    const servers = (held?.servers ?? []).map(({ name, version }) => ({ name, version }));
    const heldBy = held === undefined ? "" : JSON.stringify([held.migration, servers]);
    if (held !== undefined && heldBy !== this.#heldBy) {
      this.#deps.log.info({ migration: held.migration, servers }, "a removal waits for servers of an older version");
    }
    this.#heldBy = heldBy;
  }

  #announcement(): Announcement {
    return { ...this.#deps.self, knownSchema: this.#deps.upkeep.known, url: this.#url };
  }
}

import type { Clock } from "../core/clock.ts";
import type { ServerRow } from "../db/schema-upkeep.ts";

type Sighting = { beats: number; sinceMs: number };

/**
 * Which servers are alive, as one of them sees it: those whose heart-beats grew within the time, measured here. No wall
 * clock is asked, neither theirs, nor this machine's, nor the database's: one that jumps would declare all of them dead.
 * A server that was just seen for the first time counts as alive.
 */
export class Sightings {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #seen = new Map<string, Sighting>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Notes all the rows that there are. */
  note(rows: readonly Pick<ServerRow, "id" | "beats">[]): void {
    const sinceMs = this.#clock.monotonicMs();
    this.#seen = new Map(
      rows.map(({ id, beats }) => {
        const before = this.#seen.get(id);
        return [id, before?.beats === beats ? before : { beats, sinceMs }];
      }),
    );
  }

  /** How long the server has shown no sign of life. */
  silentMs({ id, beats }: Pick<ServerRow, "id" | "beats">): number {
    const seen = this.#seen.get(id);
    return seen?.beats === beats ? this.#clock.monotonicMs() - seen.sinceMs : 0;
  }
}

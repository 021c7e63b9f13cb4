/** A server on the catalog, as its row in `servers` says. */
export type ServerRow = {
  id: string;
  name: string;
  version: string;
  /** How many migrations its program knows. */
  knownSchema: number;
  /** Grows with every heart-beat: whether it grew is the sign of life, whatever any clock says. */
  beats: number;
};

/** A removal that waits for servers that may use what it removes. */
export type HeldRemoval = { migration: string; servers: readonly ServerRow[] };

export type RemovalOutcome = { removed: readonly string[]; held?: HeldRemoval };

/** The schema of an open catalog against what the program knows. */
export interface SchemaUpkeep {
  /** How many migrations this program knows. */
  readonly known: number;
  /** How many the catalog had seen when it was opened: more in one of a newer version. */
  readonly found: number;
  /** Whether this program has removals at all. */
  readonly hasRemovals: boolean;
  /**
   * Runs the removals that wait, in order, up to the first that a live server of an older version holds back. New servers
   * cannot announce themselves meanwhile. May be called by many servers at once; repeats nothing.
   */
  removeUnused(isAlive: (server: ServerRow) => boolean): Promise<RemovalOutcome>;
}

export function serverRow(row: Record<string, unknown>): ServerRow {
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    version: String(row["version"]),
    knownSchema: Number(row["known_schema"]),
    beats: Number(row["beats"]),
  };
}

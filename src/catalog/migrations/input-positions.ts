/**
 * What each input last said of itself, as JSON, for people and `system` tables. Nothing rests on it.
 */
const INPUT_STATES = `
CREATE TABLE input_states (
  source text PRIMARY KEY,
  node text NOT NULL,
  state text NOT NULL,
  updated_at_ms bigint NOT NULL
);
`;

/**
 * Where inputs are that can be read again: see `src/catalog/input-positions.ts`. Names are ordered by bytes.
 *
 * Nodes of the version before go on: they have no such inputs.
 */
export const SQLITE_INPUT_POSITIONS = `
CREATE TABLE input_positions (
  source TEXT PRIMARY KEY,
  position TEXT NOT NULL,
  snapshot_id INTEGER NOT NULL,
  moved_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
${INPUT_STATES}`;

export const POSTGRES_INPUT_POSITIONS = `
CREATE TABLE engine.input_positions (
  source text COLLATE "C" PRIMARY KEY,
  position text NOT NULL,
  snapshot_id bigint NOT NULL,
  moved_at_ms bigint NOT NULL
);

-- Answers {kind: "moved", positions} with those sources that are not where the steps begin; NULL when all are. To be
-- asked under the lock of the head. The rows stay as they are until the transaction ends: a reset waits.
CREATE FUNCTION engine.positions_moved(p_steps json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v_moved json;
BEGIN
  IF json_array_length(p_steps) = 0 THEN RETURN NULL; END IF;
  PERFORM 1 FROM engine.input_positions p
  WHERE p.source IN (SELECT s.name FROM json_to_recordset(p_steps) AS s (name text)) ORDER BY p.source FOR UPDATE;
  SELECT json_agg(json_build_object('name', s.name, 'position', p.position)) INTO v_moved
  FROM json_to_recordset(p_steps) AS s (name text, "from" text)
  LEFT JOIN engine.input_positions p ON p.source = s.name
  WHERE p.position IS DISTINCT FROM s."from";
  IF v_moved IS NULL THEN RETURN NULL; END IF;
  RETURN json_build_object('kind', 'moved', 'positions', v_moved);
END $$;

-- Takes the steps when the answer of a commit says that it was made, and hands that answer on.
CREATE FUNCTION engine.advance_positions(p_steps json, p_answer json) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  IF p_answer->>'kind' = 'done' AND json_array_length(p_steps) > 0 THEN
    INSERT INTO engine.input_positions (source, position, snapshot_id, moved_at_ms)
    SELECT s.name, s."to", (p_answer->>'snapshotId')::bigint, (p_answer->>'committedAtMs')::bigint
    FROM json_to_recordset(p_steps) AS s (name text, "to" text)
    ON CONFLICT (source) DO UPDATE
    SET position = excluded.position, snapshot_id = excluded.snapshot_id, moved_at_ms = excluded.moved_at_ms;
  END IF;
  RETURN p_answer;
END $$;
${INPUT_STATES}`;

import type { Migration } from "../../db/migration.ts";

/**
 * The records of memories, in the vocabulary that both databases share. `database_id` is the catalog's: a database that
 * is made again under the name of a dropped one has another, and nothing of the old one's memory.
 *
 * - `memory_heads`: the newest commit of a database, and who has reserved the next one (`writer.ts`).
 * - `memory_commits`: the stamp of each commit, in µs. Stamps grow with `seq`.
 * - `memory_records`: versions of nodes and edges. `seq` is the commit that brought a version, `ended_seq` the one that
 *   superseded it; of each id one version is current, which has none. A version that never was current has both alike.
 *   `erased` is 1 for tombstones. `duplicate_key` is for those memories alone that a duplicate confirms, `src` and `dst`
 *   are ids of nodes of the memory. `body` is JSON (`rows.ts`).
 * - `memory_counts`: how many current versions there are, without tombstones; of these, how many are invalidated.
 * - `memory_settings`: JSON.
 */
const MEMORY_RECORDS = `
CREATE TABLE memory_heads (
  database_id bigint PRIMARY KEY,
  seq bigint NOT NULL,
  stamp_us bigint NOT NULL,
  reserved_by text,
  reserved_until_ms bigint NOT NULL
);

CREATE TABLE memory_commits (
  database_id bigint NOT NULL,
  seq bigint NOT NULL,
  stamp_us bigint NOT NULL,
  PRIMARY KEY (database_id, seq)
);
CREATE INDEX memory_commits_by_stamp ON memory_commits (database_id, stamp_us);

CREATE TABLE memory_records (
  database_id bigint NOT NULL,
  kind text NOT NULL,
  id text NOT NULL,
  version bigint NOT NULL,
  seq bigint NOT NULL,
  ended_seq bigint,
  realm text NOT NULL,
  origin_us bigint NOT NULL,
  content_hash text NOT NULL,
  duplicate_key text,
  src text,
  dst text,
  erased bigint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (database_id, kind, id, version)
);
CREATE UNIQUE INDEX memory_records_current ON memory_records (database_id, kind, id) WHERE ended_seq IS NULL;
CREATE INDEX memory_records_by_seq ON memory_records (database_id, seq);
CREATE INDEX memory_records_by_duplicate_key ON memory_records (database_id, duplicate_key)
  WHERE ended_seq IS NULL AND duplicate_key IS NOT NULL;
CREATE INDEX memory_records_by_src ON memory_records (database_id, src) WHERE ended_seq IS NULL AND src IS NOT NULL;
CREATE INDEX memory_records_by_dst ON memory_records (database_id, dst) WHERE ended_seq IS NULL AND dst IS NOT NULL;

CREATE TABLE memory_counts (
  database_id bigint NOT NULL,
  realm text NOT NULL,
  kind text NOT NULL,
  current bigint NOT NULL,
  invalidated bigint NOT NULL,
  PRIMARY KEY (database_id, realm, kind)
);

CREATE TABLE memory_settings (
  database_id bigint PRIMARY KEY,
  settings text NOT NULL,
  updated_at_ms bigint NOT NULL
);
`;

/**
 * The vectors of nodes' texts, which say what a text means: derived from the records, by a model.
 *
 * - `memory_vector_heads`: by database and model, the number of the newest vector, the commit up to which all nodes have
 *   theirs, and which process is computing more. `held_until_ms` is until when, and with none when the last one was.
 * - `memory_vectors`: `text_key` is a digest of the node's id and its text, so versions with the same text share a vector,
 *   and no two nodes do: the rights to a vector, and its end, are those of its node. Vectors are numbered by `seq` in the
 *   order of their commits. `vector` is base64 of 32-bit floats, the lowest byte first.
 */
const MEMORY_VECTORS = `
CREATE TABLE memory_vector_heads (
  database_id bigint NOT NULL,
  model text NOT NULL,
  seq bigint NOT NULL,
  through_seq bigint NOT NULL,
  held_by text,
  held_until_ms bigint NOT NULL,
  PRIMARY KEY (database_id, model)
);

CREATE TABLE memory_vectors (
  database_id bigint NOT NULL,
  model text NOT NULL,
  text_key text NOT NULL,
  node_id text NOT NULL,
  seq bigint NOT NULL,
  vector text NOT NULL,
  PRIMARY KEY (database_id, model, text_key)
);
CREATE UNIQUE INDEX memory_vectors_by_seq ON memory_vectors (database_id, model, seq);
CREATE INDEX memory_vectors_by_node ON memory_vectors (database_id, node_id);
`;

/** What a realm's nodes changed last, of many edges: the brief and consolidation ask for it. */
const NODES_BY_REALM = `
CREATE INDEX memory_nodes_by_realm ON memory_records (database_id, realm, seq)
  WHERE kind = 'node' AND ended_seq IS NULL AND erased = 0;
`;

/**
 * What a language model said of two memories that may say the same (`verdicts.ts`).
 *
 * - `memory_verdicts`: a row for each pair, the lower id first, with the keys of the texts that it is about (as those of
 *   vectors). While `verdict` is `open` the pair waits until `due_ms` to be asked about; `failures` is how often that
 *   failed. Otherwise `model` said so.
 * - `memory_verdict_days`: how many pairs were asked about on a day since 1970, of all databases.
 */
const MEMORY_VERDICTS = `
CREATE TABLE memory_verdicts (
  database_id bigint NOT NULL,
  realm text NOT NULL,
  first_id text NOT NULL,
  second_id text NOT NULL,
  first_key text NOT NULL,
  second_key text NOT NULL,
  verdict text NOT NULL,
  failures bigint NOT NULL,
  due_ms bigint NOT NULL,
  model text,
  judged_at_ms bigint,
  PRIMARY KEY (database_id, first_id, second_id)
);
CREATE INDEX memory_verdicts_by_second ON memory_verdicts (database_id, second_id);
CREATE INDEX memory_verdicts_by_realm ON memory_verdicts (database_id, realm);
CREATE INDEX memory_verdicts_open ON memory_verdicts (due_ms) WHERE verdict = 'open';

CREATE TABLE memory_verdict_days (
  day bigint PRIMARY KEY,
  pairs bigint NOT NULL
);
`;

export const MEMORY_MIGRATIONS: readonly Migration[] = [
  { name: "memory records", sqlite: 19, postgres: 16, sql: MEMORY_RECORDS },
  { name: "memory vectors", sqlite: 21, postgres: 18, sql: MEMORY_VECTORS },
  { name: "memory nodes by realm", sqlite: 24, postgres: 21, sql: NODES_BY_REALM },
  { name: "memory verdicts", sqlite: 25, postgres: 22, sql: MEMORY_VERDICTS },
];

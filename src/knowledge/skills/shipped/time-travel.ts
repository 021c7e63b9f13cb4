import type { Skill } from "./skill.ts";

export const TIME_TRAVEL: Skill = {
  name: "engine-time-travel",
  description:
    "How to ask what tables held at an earlier time, what changed since, and what was remembered then. Read it for questions " +
    'about the past state of data: "as of", "before the import", "what changed".',
  body: `# Time travel

Two different times answer two different questions:

- The column \`at\` says when a row's event happened. "Errors of yesterday" is a condition on \`at\`.
- A snapshot says what the table held at a moment. "What did the report show yesterday" is a query of a snapshot.

## Query a snapshot

\`AT (TIMESTAMP => …)\` reads the newest snapshot that was committed by that moment, \`AT (VERSION => …)\` one by its number. Both
take constants and now(), no sub-queries.

~~~sql
SELECT count(*) FROM events AT (TIMESTAMP => now() - INTERVAL 1 SECOND)
SELECT id, committed_at FROM system.snapshots ORDER BY id DESC LIMIT 5
~~~

Snapshots are numbered over all databases, so one number is one moment for all tables. Columns that were added later are not
in \`*\` of an older snapshot.

## What changed

Compare the table with its own past. Rows that are new since then:

~~~sql
SELECT label, count(*) AS n FROM events GROUP BY label EXCEPT SELECT label, count(*) AS n FROM events AT (TIMESTAMP => now() - INTERVAL 1 SECOND) GROUP BY label
~~~

## Limits

\`snapshot_expired\` means that the snapshot is gone; the message names the oldest that can be read. Take that one, and say so
in your answer. Rows past the retention of their table are in no snapshot. Say which moment an answer is about.

## Memory has two times, too

recall_memory and get_memory take \`as_of\` (what held then) and \`known_at\` (what had been recorded by then), each in RFC 3339.
get_memory with \`history\` has every version.
`,
};

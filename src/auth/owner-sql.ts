/**
 * The owner of a record of an earlier version, as an expression over the columns that say who made it. Migrations are
 * made of it, so it never changes; `auth/owner.ts` has the rule.
 */
export function ownerSql(subject: string, kind: string): string {
  return (
    `CASE WHEN ${kind} = 'anonymous' THEN 'local' WHEN ${kind} = 'internal' THEN 'engine' ` +
    `WHEN ${kind} = 'worker' THEN 'admins:' WHEN ${subject} IN ('local', 'engine') THEN 'user:' || ${subject} ` +
    `ELSE ${subject} END`
  );
}

/**
 * The same where only the subject was kept: the audit log says of which kind the maker was. Without an entry, a subject
 * that no user can have says it too; else the record is the admins'.
 */
export function ownerByAuditSql({
  action,
  target,
  subject,
}: {
  action: string;
  target: string;
  subject: string;
}): string {
  const made = `FROM audit_log WHERE action = '${action}' AND target = ${target} AND outcome = 'ok' ORDER BY id LIMIT 1`;
  const logged = `(SELECT ${ownerSql("actor", "actor_kind")} ${made})`;
  const said =
    `CASE WHEN ${subject} LIKE 'token:%' OR ${subject} LIKE 'http%#%' THEN ${subject} ` +
    `WHEN EXISTS (SELECT 1 FROM users WHERE users.name = ${subject}) THEN ${ownerSql(subject, "'session'")} ` +
    "ELSE 'admins:' END";
  return `coalesce(${logged}, ${said})`;
}

const KIB = 1024;

export const SKILL_LIMITS = {
  nameChars: 64,
  descriptionChars: 1_024,
  /** Of a whole file `SKILL.md`. */
  bytes: 64 * KIB,
  /** Of one folder of skills; the others are left out, and that is told. */
  perFolder: 200,
  /** Of one set of enabled skills. */
  enabled: 200,
} as const;

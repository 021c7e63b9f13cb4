const KIB = 1024;

/** What file memories may take. */
export const FILE_SYNC_LIMITS = {
  /** A larger file is left alone. */
  fileBytes: 256 * KIB,
  /** Of one project; the others are left alone. */
  files: 5_000,
  projects: 1_000,
  /** Of the index, which agents load whole: what is past that they may not see. */
  indexLines: 200,
  indexLineChars: 200,
  fileNameChars: 200,
  /** Memories of one project whose vectors are compared, each with each: the most important ones. */
  comparedMemories: 2_000,
  /** Findings of each kind that a pass tells of one project. */
  toldFindings: 100,
  /** Records of one import or answer. */
  records: 2_000,
} as const;

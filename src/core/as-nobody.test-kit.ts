const NOBODY = 65_534;

/** Runs as a user without rights where the tests run as root, which may read everything. */
export async function asNobody<T>(act: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return await act();
  process.seteuid?.(NOBODY);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}

/** Whom `asNobody` runs as: files that it is to have must be this user's. */
export function nobody(): number {
  const own = process.getuid?.() ?? 0;
  return own === 0 ? NOBODY : own;
}

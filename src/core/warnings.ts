/**
 * Keeps Node from telling every user that `node:sqlite` is experimental: that is a decision of this project, recorded
 * in its tests, and no news to them. All other warnings pass. Import this first in every entry file.
 */
const emitWarning = process.emitWarning.bind(process) as (warning: string | Error, ...rest: unknown[]) => void;

process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
  const text = warning instanceof Error ? warning.message : warning;
  if (!text.startsWith("SQLite is an experimental feature")) emitWarning(warning, ...rest);
};

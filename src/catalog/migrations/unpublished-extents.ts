/**
 * Indexes by which live extents are found that other programs cannot read yet (`Catalog.unpublishedDays`): most tables
 * have few of them, and many that are published.
 */
const indexes = (prefix: string): string => `
CREATE INDEX extents_unpublished ON ${prefix}extents (table_id, begin_snapshot)
  WHERE end_snapshot IS NULL AND (format <> 'parquet' OR format_version < 2);
CREATE INDEX columns_widened ON ${prefix}columns (table_id, widened_version) WHERE widened_version IS NOT NULL;
`;

export const SQLITE_UNPUBLISHED_EXTENTS = indexes("");
export const POSTGRES_UNPUBLISHED_EXTENTS = indexes("engine.");

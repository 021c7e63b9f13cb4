import { NOW, type RecordStore } from "../../../db/records.ts";
import { VectorStore } from "../embed/vector-store.ts";
import { deleteSome } from "./delete-some.ts";

/**
 * For so long the vectors of a model stay after another one has taken over: servers of a cluster may have different
 * models for a while, and each would embed everything anew whose vectors another one deletes.
 */
const KEPT_MS = 86_400_000;

/**
 * Models that have a successor: it has embedded everything, and was at work long after they last were. `held_until_ms`
 * says when that was.
 */
const FORMER =
  "SELECT old.database_id, old.model FROM memory_vector_heads old WHERE (old.held_by IS NULL OR old.held_until_ms < ?) " +
  "AND EXISTS (SELECT 1 FROM memory_vectors v WHERE v.database_id = old.database_id AND v.model = old.model) " +
  "AND EXISTS (SELECT 1 FROM memory_vector_heads young JOIN memory_heads head ON head.database_id = young.database_id " +
  "WHERE young.database_id = old.database_id AND young.held_by IS NULL AND young.through_seq >= head.seq " +
  "AND young.held_until_ms >= old.held_until_ms + ?)";

/**
 * Deletes vectors of models that are not used any more; resolves to how many. Their heads stay, so that a server that has
 * such a model after all embeds everything anew, and numbers it after what its index holds.
 */
export async function sweepFormerModels(records: RecordStore, holder: string, signal: AbortSignal): Promise<number> {
  const vectors = new VectorStore(records, holder);
  let rows = 0;
  for (const { database_id: id, model: name } of await records.rows(FORMER, [NOW, KEPT_MS])) {
    const place = { databaseId: Number(id), model: String(name) };
    if ((await vectors.hold(place)) === undefined) continue;
    const some = {
      table: "memory_vectors",
      key: ["text_key"],
      where: { database_id: place.databaseId, model: place.model },
    };
    try {
      // Before each batch: whoever takes the vectors over must know that they are not all there.
      for (let isMore = true; isMore && (await vectors.advance(place, 0));) {
        signal.throwIfAborted();
        const deleted = await deleteSome(records, some);
        ({ isMore } = deleted);
        rows += deleted.rows;
      }
    } finally {
      await vectors.release(place);
    }
  }
  return rows;
}

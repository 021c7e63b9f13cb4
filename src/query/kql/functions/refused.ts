import { no, type FunctionRule, type FunctionTable } from "./table.ts";

/** Whole families that are not supported, and why. */
export const REFUSED: FunctionTable = {
  ...all("sketches (tdigest, hll) are not supported: use percentile() or dcount(), which are exact", [
    "dcount_hll __hll_normalize hll_isvalid hll_merge merge_tdigest percentile_tdigest percentiles_array_tdigest",
    "percentrank_tdigest rank_tdigest tdigest_isvalid tdigest_merge",
  ]),
  ...all("there is no geometry", [
    "geo_angle geo_azimuth geo_closest_point_on_line geo_closest_point_on_polygon geo_distance_2points",
    "geo_distance_point_to_line geo_distance_point_to_polygon geo_from_wkt geo_geohash_neighbors",
    "geo_geohash_to_central_point geo_geohash_to_polygon geo_h3cell_children geo_h3cell_level geo_h3cell_neighbors",
    "geo_h3cell_parent geo_h3cell_rings geo_h3cell_to_central_point geo_h3cell_to_polygon geo_intersection_2lines",
    "geo_intersection_2polygons geo_intersection_line_with_polygon geo_intersects_2lines geo_intersects_2polygons",
    "geo_intersects_line_with_polygon __geo_length_to_s2cell_level geo_line_buffer geo_line_centroid geo_line_densify",
    "geo_line_interpolate_point geo_line_length geo_line_locate_point __geo_line_s2cell_covering_level",
    "geo_line_simplify geo_line_to_s2cells __geo_line_validate geo_point_buffer geo_point_in_circle",
    "geo_point_in_polygon geo_point_to_geohash geo_point_to_h3cell geo_point_to_s2cell geo_polygon_area",
    "geo_polygon_buffer geo_polygon_centroid geo_polygon_densify geo_polygon_perimeter",
    "__geo_polygon_s2cell_covering_level geo_polygon_simplify geo_polygon_to_h3cells geo_polygon_to_s2cells",
    "__geo_polygon_validate geo_s2cell_neighbors geo_s2cell_to_central_point geo_s2cell_to_polygon",
    "geo_simplify_polygons_array geo_union_lines_array geo_union_polygons_array",
  ]),
  ...all("there are no graphs", ["all any graph inner_nodes labels map node_degree_in node_degree_out node_id"]),
  ...all("a query reads the tables of one database", [
    "cluster database entity_group external_table materialized_view stored_query_result",
  ]),
  ...all("there are no cursors: a query reads one snapshot", [
    "current_cursor cursor_after cursor_before_or_at cursor_current",
  ]),
  ...all("rows do not say where they are stored", [
    "current_node_id extent_id extent_tags extentid ingestion_time row_id rowstore_ordinal_range",
  ]),
  ...all("a query does not say who asks", [
    "current_cluster_endpoint current_database current_principal current_principal_details",
    "current_principal_is_member_of",
  ]),
  ...all("there is no database of places", ["geo_info_from_ip_address"]),
  ...all("it is not in the reference", ["__cast __invoke column_names_of"]),
  ...all("sizes in memory are not those of the reference's engine", ["estimate_data_size"]),
};

function all(reason: string, names: readonly string[]): Record<string, FunctionRule> {
  return Object.fromEntries(names.flatMap((line) => line.split(" ")).map((name) => [name, no(reason)]));
}

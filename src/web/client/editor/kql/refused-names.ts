/**
 * Names that the language service knows and the server refuses: they are not offered, and the binder does not know them
 * either. `test/web/kql-service.test.ts` holds them against the tables of `src/query/kql/`.
 */
function named(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** Operators of pipes. */
export const REFUSED_OPERATORS: ReadonlySet<string> = named(`
  __partitionby assert-schema consume execute-and-cache facet fork graph-mark-components graph-match
  graph-shortest-paths graph-to-table graph-where-edges graph-where-nodes macro-expand make-graph project-by-names
  reduce scan
`);

/** Functions of values and rows. */
export const REFUSED_FUNCTIONS: ReadonlySet<string> = named(`
  __cast __geo_length_to_s2cell_level __geo_line_s2cell_covering_level __geo_line_validate
  __geo_polygon_s2cell_covering_level __geo_polygon_validate __hash_crc32 __hash_djb2 __hash_many_crc32 __hash_xxh64
  __hll_normalize __invoke __ipv6_lookup_ranges __lz4_compress_dynamic_array_to_base64_string all any assert beta_inv
  bin_auto cluster column_names_of current_cluster_endpoint current_cursor current_database current_node_id
  current_principal current_principal_details current_principal_is_member_of cursor_after cursor_before_or_at
  cursor_current database dcount_hll entity_group estimate_data_size extent_id extent_tags extentid external_table
  geo_angle geo_azimuth geo_closest_point_on_line geo_closest_point_on_polygon geo_distance_2points
  geo_distance_point_to_line geo_distance_point_to_polygon geo_from_wkt geo_geohash_neighbors
  geo_geohash_to_central_point geo_geohash_to_polygon geo_h3cell_children geo_h3cell_level geo_h3cell_neighbors
  geo_h3cell_parent geo_h3cell_rings geo_h3cell_to_central_point geo_h3cell_to_polygon geo_info_from_ip_address
  geo_intersection_2lines geo_intersection_2polygons geo_intersection_line_with_polygon geo_intersects_2lines
  geo_intersects_2polygons geo_intersects_line_with_polygon geo_line_buffer geo_line_centroid geo_line_densify
  geo_line_interpolate_point geo_line_length geo_line_locate_point geo_line_simplify geo_line_to_s2cells
  geo_point_buffer geo_point_in_circle geo_point_in_polygon geo_point_to_geohash geo_point_to_h3cell
  geo_point_to_s2cell geo_polygon_area geo_polygon_buffer geo_polygon_centroid geo_polygon_densify
  geo_polygon_perimeter geo_polygon_simplify geo_polygon_to_h3cells geo_polygon_to_s2cells geo_s2cell_neighbors
  geo_s2cell_to_central_point geo_s2cell_to_polygon geo_simplify_polygons_array geo_union_lines_array
  geo_union_polygons_array graph gzip_compress_to_base64_string gzip_decompress_from_base64_string hash_combine
  hash_many hll_isvalid hll_merge ingestion_time inner_nodes labels map materialized_view merge_tdigest node_degree_in
  node_degree_out node_id parse_user_agent parse_xml percentile_tdigest percentiles_array_tdigest percentrank_tdigest
  rank_tdigest row_id row_rank rowstore_ordinal_range series_decompose series_decompose_anomalies
  series_decompose_forecast series_fft series_fir series_fit_2lines series_fit_2lines_dynamic series_fit_line
  series_fit_line_dynamic series_fit_poly series_ifft series_outliers series_periods_detect series_periods_validate
  series_seasonal stored_query_result tdigest_isvalid tdigest_merge treepath weekofyear zlib_compress_to_base64_string
  zlib_decompress_from_base64_string
`);

/** Functions of groups. */
export const REFUSED_AGGREGATES: ReadonlySet<string> = named(`
  hll hll_if hll_merge merge_tdigest passthrough tdigest tdigest_merge
`);

/** What `evaluate` calls. */
export const REFUSED_PLUGINS: ReadonlySet<string> = named(`
  active_users_count activity_counts_metrics activity_engagement activity_metrics ai_chat_completion
  ai_chat_completion_prompt ai_embed_text ai_embeddings autocluster azure_digital_twins_query_request basket
  cosmosdb_sql_request csharp dax_request dcount_intersect diffpatterns estimate_rows_count execute_query
  execute_show_command external_datatable funnel_sequence funnel_sequence_completion geo_line_lookup
  geo_polygon_lookup http_request http_request_post identity identity_v3 infer_storage_schema
  infer_storage_schema_with_suggestions ipv4_lookup ipv6_lookup mysql_request new_activity_metrics postgresql_request
  preview python r rolling_percentile rows_near sequence_detect session_count sliding_window_counts sql_request
`);

/** Sources of rows and statements that have no rows in those tables. */
export const REFUSED_SOURCES: ReadonlySet<string> = named("alias declare externaldata inline_external_table restrict");

-- Made by samples.py with google-adk 2.13.0.
BEGIN TRANSACTION;
CREATE TABLE adk_internal_metadata (
	"key" VARCHAR(128) NOT NULL, 
	value VARCHAR(256) NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "adk_internal_metadata" VALUES('schema_version','1');
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
INSERT INTO "app_states" VALUES('shop','{"theme": "dark", "calls": 2}','2026-11-18 14:26:40');
INSERT INTO "app_states" VALUES('lone','{"kept": 1}','2026-11-18 14:26:40');
CREATE TABLE events (
	id VARCHAR(128) NOT NULL, 
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	invocation_id VARCHAR(256) NOT NULL, 
	timestamp DATETIME NOT NULL, 
	event_data TEXT, 
	PRIMARY KEY (id, app_name, user_id, session_id), 
	FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('e1','shop','ann','s1','i1','2026-11-18 11:06:41.000000','{"content": {"parts": [{"text": "Where is order 17? \ud83e\udd89 \u2028 \u0000 end"}], "role": "user"}, "invocation_id": "i1", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e1", "timestamp": 1795000001.0}');
INSERT INTO "events" VALUES('e2','shop','ann','s1','i1','2026-11-18 11:06:42.000000','{"model_version": "gemini-2.5-flash", "content": {"parts": [{"text": "let me see", "thought": true, "thought_signature": "-_8A"}, {"function_call": {"id": "c1", "args": {"order_number": 17, "none": null, "deepKey": {"a_b": 1}}, "name": "order_status"}}], "role": "model"}, "finish_reason": "STOP", "custom_metadata": {"trace_id": "t-1", "is_it": null}, "usage_metadata": {"candidates_token_count": 3, "prompt_token_count": 12, "prompt_tokens_details": [{"modality": "TEXT", "token_count": 12}], "total_token_count": 15}, "invocation_id": "i1", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "long_running_tool_ids": ["c1"], "branch": "desk.clerk", "id": "e2", "timestamp": 1795000002.0}');
INSERT INTO "events" VALUES('e3','shop','ann','s1','i1','2026-11-18 11:06:43.000000','{"content": {"parts": [{"function_response": {"id": "c1", "name": "order_status", "response": {"order_state": "on the way"}}}, {"inline_data": {"data": "AAEC-_8=", "mime_type": "image/png"}}, {"file_data": {"file_uri": "gs://b/f", "mime_type": "text/plain"}}, {"executable_code": {"code": "1+1", "language": "PYTHON"}}, {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "2"}}], "role": "user"}, "invocation_id": "i1", "author": "clerk", "actions": {"state_delta": {"n": 1, "last_order": {"order_number": 17}, "user:orders": 1, "app:calls": 1, "nothing": null, "user:nothing": null}, "artifact_delta": {"invoice_17.pdf": 0}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e3", "timestamp": 1795000003.0}');
INSERT INTO "events" VALUES('e4','shop','ann','s1','i1','2026-11-18 11:06:44.000000','{"content": {"parts": [{"text": "It is on the way."}], "role": "model"}, "grounding_metadata": {"grounding_chunks": [{"web": {"uri": "https://example.org"}}], "web_search_queries": ["order_17"]}, "invocation_id": "i1", "author": "clerk", "actions": {"state_delta": {"n": 2, "big": 9223372036854775807, "huge": 18446744073709551615, "small": -9223372036854775808, "third": 0.3333333333333333, "tiny": 5e-324, "uni_code": "\u00e9\ud83e\udd89"}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}, "end_of_agent": true, "agent_state": {"step_count": 2}}, "node_info": {"path": ""}, "id": "e4", "timestamp": 1795000004.0}');
INSERT INTO "events" VALUES('e5','shop','ann','s1','i2','2026-11-18 11:06:45.000000','{"content": {"parts": [{"text": "And order 18?"}], "role": "user"}, "invocation_id": "i2", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e5", "timestamp": 1795000005.0}');
INSERT INTO "events" VALUES('e6','shop','ann','s1','i2','2026-11-18 11:06:46.000000','{"content": {"parts": [{"text": "Lost."}], "role": "model"}, "invocation_id": "i2", "author": "clerk", "actions": {"state_delta": {"n": 3, "wrong": true, "user:orders": 2}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {"c_2": {"hint": "sure?", "confirmed": false, "payload": {"pay_load": 1}}}}, "node_info": {"path": ""}, "id": "e6", "timestamp": 1795000006.0}');
INSERT INTO "events" VALUES('e7','shop','ann','s1','i3','2026-11-18 11:06:47.000000','{"invocation_id": "i3", "author": "user", "actions": {"state_delta": {"n": 2, "wrong": null}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}, "rewind_before_invocation_id": "i2"}, "node_info": {"path": ""}, "id": "e7", "timestamp": 1795000007.0}');
INSERT INTO "events" VALUES('e8','shop','ann','s1','i4','2026-11-18 11:06:48.000000','{"invocation_id": "i4", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}, "compaction": {"start_timestamp": 1795000001.0, "end_timestamp": 1795000004.0, "compacted_content": {"parts": [{"text": "one order"}], "role": "model"}}}, "node_info": {"path": ""}, "id": "e8", "timestamp": 1795000008.0}');
INSERT INTO "events" VALUES('e9','shop','ann','s1','i5','2026-11-18 11:06:49.000000','{"content": {"parts": [{"text": "Thanks!"}], "role": "user"}, "invocation_id": "i5", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e9", "timestamp": 1795000009.0}');
INSERT INTO "events" VALUES('f9','shop','ann','s1','i5','2026-11-18 11:06:49.000000','{"content": {"parts": [{"text": "You are welcome."}], "role": "model"}, "invocation_id": "i5", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "f9", "timestamp": 1795000009.0}');
INSERT INTO "events" VALUES('d9','shop','ann','s1','i5','2026-11-18 11:06:49.000000','{"content": {"parts": [{"text": "Bye."}], "role": "model"}, "error_code": "X_1", "error_message": "an error", "invocation_id": "i5", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "d9", "timestamp": 1795000009.0}');
INSERT INTO "events" VALUES('e200','shop','böb/☃','s1','i1','2026-11-18 11:10:00.123456','{"content": {"parts": [{"text": "hi"}], "role": "user"}, "invocation_id": "i1", "author": "user", "actions": {"state_delta": {"app:calls": 2, "user:name": "B\u00f6b"}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "e200", "timestamp": 1795000200.123456}');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('shop','ann','s1','{"given": {"at": ["creation", null]}, "n": 2, "empty": null, "last_order": {"order_number": 17}, "nothing": null, "big": 9223372036854775807, "huge": 18446744073709551615, "small": -9223372036854775808, "third": 0.3333333333333333, "tiny": 5e-324, "uni_code": "\u00e9\ud83e\udd89", "wrong": null}','2026-11-18 11:06:40.000000','2026-11-18 11:06:49.000000');
INSERT INTO "sessions" VALUES('shop','ann','s2','{"only": "given"}','2026-11-18 11:08:20.500000','2026-11-18 11:08:20.500000');
INSERT INTO "sessions" VALUES('shop','böb/☃','s1','{}','2026-11-18 11:08:20.500000','2026-11-18 11:10:00.123456');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO "user_states" VALUES('shop','ann','{"name": "Ann", "orders": 2, "nothing": null}','2026-11-18 14:26:40');
INSERT INTO "user_states" VALUES('shop','böb/☃','{"name": "B\u00f6b"}','2026-11-18 14:26:40');
INSERT INTO "user_states" VALUES('lone','eve','{"kept": [2], "null": null}','2026-11-18 14:26:40');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
COMMIT;

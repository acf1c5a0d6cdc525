// How a concept is drawn: one point each, in one call, which also machines without a GPU do fast (sigma's own round nodes are
// instanced triangles). A dot is a rim of one colour around a core of another; `rim` is its share of the radius.

const { FLOAT, UNSIGNED_BYTE, POINTS } = WebGLRenderingContext;

const VERTEX = `
attribute vec2 a_position;
attribute float a_size;
attribute float a_rim;
attribute vec4 a_color;
attribute vec4 a_core;
attribute vec4 a_id;
uniform float u_sizeRatio;
uniform float u_pixelRatio;
uniform mat3 u_matrix;
varying vec4 v_rim;
varying vec4 v_core;
varying float v_inner;
varying float v_soft;

void main() {
  gl_Position = vec4((u_matrix * vec3(a_position, 1)).xy, 0, 1);
  float radius = a_size / u_sizeRatio * u_pixelRatio;
  gl_PointSize = max(2.0 * radius, 1.0);
  v_soft = 1.0 / max(radius, 1.0);
  v_inner = 1.0 - a_rim;
  #ifdef PICKING_MODE
  v_rim = a_id;
  v_core = a_id;
  #else
  v_rim = a_color;
  v_core = a_core;
  #endif
  v_rim.a *= 255.0 / 254.0;
  v_core.a *= 255.0 / 254.0;
}`;

const FRAGMENT = `
precision highp float;
varying vec4 v_rim;
varying vec4 v_core;
varying float v_inner;
varying float v_soft;

void main() {
  float away = 2.0 * length(gl_PointCoord - vec2(0.5));
  #ifdef PICKING_MODE
  gl_FragColor = away < 1.0 ? v_rim : vec4(0.0);
  #else
  vec4 colour = mix(v_core, v_rim, smoothstep(v_inner - v_soft, v_inner + 0.001, away));
  gl_FragColor = colour * (1.0 - smoothstep(1.0 - v_soft, 1.0, away));
  #endif
}`;

export class Dots extends Sigma.rendering.NodeProgram {
  getDefinition() {
    return {
      VERTICES: 1,
      VERTEX_SHADER_SOURCE: VERTEX,
      FRAGMENT_SHADER_SOURCE: FRAGMENT,
      METHOD: POINTS,
      UNIFORMS: ["u_sizeRatio", "u_pixelRatio", "u_matrix"],
      ATTRIBUTES: [
        { name: "a_position", size: 2, type: FLOAT },
        { name: "a_size", size: 1, type: FLOAT },
        { name: "a_rim", size: 1, type: FLOAT },
        { name: "a_color", size: 4, type: UNSIGNED_BYTE, normalized: true },
        { name: "a_core", size: 4, type: UNSIGNED_BYTE, normalized: true },
        { name: "a_id", size: 4, type: UNSIGNED_BYTE, normalized: true },
      ],
    };
  }

  processVisibleItem(id, start, { x, y, size, rim, color, core }) {
    const { floatColor } = Sigma.utils;
    this.array.set([x, y, size, rim, floatColor(color), floatColor(core), id], start);
  }

  setUniforms({ sizeRatio, pixelRatio, matrix }, { gl, uniformLocations }) {
    gl.uniform1f(uniformLocations.u_sizeRatio, sizeRatio);
    gl.uniform1f(uniformLocations.u_pixelRatio, pixelRatio);
    gl.uniformMatrix3fv(uniformLocations.u_matrix, false, matrix);
  }
}
